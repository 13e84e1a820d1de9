/**
 * The local inbox: a real mail server and a real webhook receiver on loopback. What no provider is configured for goes
 * there, and tests and drills can tell it to misbehave.
 */
import { systemClock } from "sluice";
import { seededRandom } from "sluice/testing";
import { checkInteger } from "../channels/check.ts";
import { startHttpSink } from "./http-sink.ts";
import { checkMisbehaviour, DEFAULT_SLOW_MS, drawBehaviour, type Misbehaviour } from "./misbehaviour.ts";
import { type InboxReceipt, type InboxStats, Ledger, type LedgerOptions } from "./receipt.ts";
import { startSmtpSink } from "./smtp-sink.ts";

export interface InboxOptions {
  /** @default 0, any free port */
  readonly smtpPort?: number | undefined;
  /** @default 0, any free port */
  readonly httpPort?: number | undefined;
  /** Shares of all messages, or a choice for each. @default none */
  readonly misbehave?: Misbehaviour | LedgerOptions["behave"] | undefined;
  /** The same seed gives the same faults for messages that come in the same order. @default 1 */
  readonly seed?: number | undefined;
  /** Called before the sender gets any answer; what it throws ends the connection without one. */
  readonly onReceipt?: LedgerOptions["onReceipt"];
  /** A user's webhook secret, with which signatures are checked; without one, only that there is a signature. */
  readonly secretOf?: ((user: string) => string | undefined) | undefined;
}

export interface Inbox {
  readonly smtpUrl: string;
  /** A user's webhook is here, followed by `/` and the user's id, percent-encoded. */
  readonly webhookBase: string;
  /** Messages by channel and outcome. */
  stats(): InboxStats;
  /** The last 200 receipts, oldest first. */
  recent(): readonly InboxReceipt[];
  /** Hangs up on everybody. Idempotent. */
  close(): Promise<void>;
}

export async function startInbox(options: InboxOptions = {}): Promise<Inbox> {
  const { misbehave = {}, seed = 1, onReceipt, secretOf } = options;
  const smtpPort = checkInteger("smtpPort", options.smtpPort ?? 0, 0, 65_535);
  const httpPort = checkInteger("httpPort", options.httpPort ?? 0, 0, 65_535);
  const shares = typeof misbehave === "function" ? undefined : checkMisbehaviour(misbehave);
  const behave = typeof misbehave === "function" ? misbehave : drawBehaviour(misbehave, seededRandom(seed));
  const ledger = new Ledger({ behave, onReceipt });
  const shared = { ledger, slowMs: shares?.slowMs ?? DEFAULT_SLOW_MS, clock: systemClock };
  const smtp = await startSmtpSink({ ...shared, port: smtpPort });
  const http = await startHttpSink({ ...shared, port: httpPort, secretOf }).catch(async (error: unknown) => {
    await smtp.close();
    throw error;
  });
  let closed: Promise<unknown> | undefined;
  return {
    smtpUrl: smtp.url,
    webhookBase: `${http.url}/hooks`,
    stats: () => ledger.stats(),
    recent: () => ledger.recent(),
    async close() {
      await (closed ??= Promise.all([smtp.close(), http.close()]));
    },
  };
}

/** Where a user's webhooks go in the inbox. */
export function inboxAddress(webhookBase: string, user: string): string {
  return `${webhookBase}/${encodeURIComponent(user)}`;
}
