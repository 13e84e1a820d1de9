/** A mail server that takes everything for everybody, or misbehaves. */
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { decodeWords } from "postal-mime";
import { type Clock, systemClock } from "sluice";
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from "smtp-server";
import type { Ledger } from "./receipt.ts";

export interface Sink {
  /** `smtp://127.0.0.1:2525`, `http://127.0.0.1:8025`. */
  readonly url: string;
  /** Hangs up on everybody. */
  close(): Promise<void>;
}

export interface SinkOptions {
  readonly ledger: Ledger;
  readonly slowMs: number;
  /** 0 for any free one. */
  readonly port: number;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export async function startSmtpSink({ ledger, slowMs, port, clock = systemClock }: SinkOptions): Promise<Sink> {
  // By the sender's port: a session doesn't show its socket.
  const sockets = new Map<number, Socket>();
  const server = new SMTPServer({
    banner: "local inbox",
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    logger: false,
    rejectOversized: true,
    size: MAX_MESSAGE_BYTES,
    onData: (stream, session, answer) => {
      receive(stream, session, answer).catch(() => sockets.get(session.remotePort)?.destroy());
    },
  });

  async function receive(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    answer: (error?: Error | null, text?: string) => void,
  ): Promise<void> {
    const raw = await readAll(stream);
    const { id, subject } = readHeader(raw);
    const to = session.envelope.rcptTo.map(({ address }) => address).join(", ");
    const valid = id !== "" && !stream.sizeExceeded;
    const outcome = ledger.enter({ channel: "email", id, to, at: clock.wallNow(), subject }, raw, valid);
    switch (outcome) {
      case "ok":
        return answer(null, `taken as ${id}`);
      case "slow":
        return void clock.setTimer(slowMs, { onTimer: () => answer(null, `taken as ${id}`) }, { background: true });
      case "4xx":
        return answer(refusal(451, "try again later"));
      case "5xx":
        return answer(refusal(550, "no such mailbox"));
      case "drop":
      case "lose":
        return void sockets.get(session.remotePort)?.destroy();
      case "hang":
        return;
      case "invalid":
        return answer(refusal(554, "a message needs a Message-ID"));
      default:
        return outcome satisfies never;
    }
  }

  server.on("error", () => {}); // a sender that hangs up in the middle of a command
  server.server.on("connection", (socket) => {
    const { remotePort = 0 } = socket;
    sockets.set(remotePort, socket);
    socket.once("close", () => sockets.delete(remotePort));
  });
  await once(server.listen(port, LOOPBACK), "listening");
  return {
    url: `smtp://${LOOPBACK}:${(server.server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(resolve));
      for (const socket of sockets.values()) socket.destroy();
      await closed;
    },
  };
}

/** Nobody else may reach the inbox. */
export const LOOPBACK = "127.0.0.1";
export const MAX_MESSAGE_BYTES = 1_048_576;

/** At most one byte more than is allowed is kept; the rest is read and forgotten. */
async function readAll(stream: SMTPServerDataStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) if (!stream.sizeExceeded) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function readHeader(raw: Buffer): { readonly id: string; readonly subject: string | undefined } {
  const end = raw.indexOf("\r\n\r\n");
  const lines = raw.subarray(0, end === -1 ? raw.length : end).toString("utf8");
  const header = lines.replaceAll(/\r\n[ \t]+/g, " "); // unfolded
  const subject = /^Subject:[ \t]*(.*)$/im.exec(header)?.[1]?.trimEnd();
  return {
    id: /^Message-ID:[ \t]*<([^@>]*)@[^>]*>/im.exec(header)?.[1] ?? "",
    subject: subject === undefined ? undefined : decodeWords(subject),
  };
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}
