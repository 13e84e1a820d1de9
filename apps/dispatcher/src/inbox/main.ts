// The inbox as a process of its own. Prints its addresses as one line of JSON once it can be reached. To the file of
// --receipts each receipt is appended, the whole message with it, before its sender gets an answer: a kill loses none.
import { openSync, writeSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { startInbox } from "./inbox.ts";
import { type Misbehaviour, parseMisbehaviour } from "./misbehaviour.ts";

interface Flags {
  readonly smtpPort: number;
  readonly httpPort: number;
  readonly receipts?: string;
  readonly misbehave: Misbehaviour;
  readonly seed: number;
}

const flags = new Command("inbox")
  .description("a mail server and a webhook receiver on loopback, which may misbehave")
  .option("--smtp-port <port>", "0 for any free one", Number, 0)
  .option("--http-port <port>", "0 for any free one", Number, 0)
  .option("--receipts <file>", "append each receipt to this file")
  .option("--misbehave <shares>", "slow=0.1:2000,4xx=0.05,5xx=0.05,drop=0.02,lose=0.02,hang=0.01", misbehaviour, {})
  .option("--seed <number>", "of the misbehaviour", Number, 1)
  .parse()
  .opts<Flags>();

function misbehaviour(text: string): Misbehaviour {
  try {
    return parseMisbehaviour(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

const file = flags.receipts === undefined ? undefined : openSync(flags.receipts, "a");
const { smtpPort, httpPort, misbehave, seed } = flags;
const inbox = await startInbox({
  smtpPort,
  httpPort,
  misbehave,
  seed,
  onReceipt: (receipt, raw) => {
    if (file !== undefined) writeSync(file, `${JSON.stringify({ ...receipt, raw: raw.toString() })}\n`);
  },
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void inbox.close());
console.log(JSON.stringify({ smtpUrl: inbox.smtpUrl, webhookBase: inbox.webhookBase }));
