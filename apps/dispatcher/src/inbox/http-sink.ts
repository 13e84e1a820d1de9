/** A receiver of Standard Webhooks for everybody, at `/hooks/<user>`, which takes everything or misbehaves. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "sluice";
import { Webhook } from "standardwebhooks";
import { LOOPBACK, MAX_MESSAGE_BYTES, type Sink, type SinkOptions } from "./smtp-sink.ts";

export interface HttpSinkOptions extends SinkOptions {
  /** A user's secret, with which signatures are checked; without one, only that there is a signature. */
  readonly secretOf?: ((user: string) => string | undefined) | undefined;
}

export async function startHttpSink(options: HttpSinkOptions): Promise<Sink> {
  const { ledger, slowMs, port, secretOf, clock = systemClock } = options;

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const user = userOf(request);
    if (user === undefined) return void response.writeHead(404).end("POST to /hooks/<user>");
    const raw = await readAll(request);
    if (raw === undefined) return void response.writeHead(413, { connection: "close" }).end("too large");
    const id = [request.headers["webhook-id"] ?? ""].flat().join();
    const problem = check(request, raw, secretOf?.(user));
    const arrival = { channel: "webhook", id, to: user, at: clock.wallNow() } as const;
    const outcome = ledger.enter(arrival, raw, problem === undefined);
    switch (outcome) {
      case "ok":
        return void response.writeHead(204).end();
      case "slow":
        clock.setTimer(slowMs, { onTimer: () => response.writeHead(204).end() }, { background: true });
        return;
      case "4xx":
        return void response.writeHead(400).end("no such user");
      case "5xx":
        return void response.writeHead(503).end("try again later");
      case "drop":
      case "lose":
        return void request.socket.destroy();
      case "hang":
        return;
      case "invalid":
        return void response.writeHead(401).end(problem);
      default:
        return outcome satisfies never;
    }
  }

  const server = createServer((request, response) => {
    receive(request, response).catch(() => request.socket.destroy()); // the sender hung up, or the book is full
  });
  await once(server.listen(port, LOOPBACK), "listening");
  return {
    url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function userOf({ method, url = "" }: IncomingMessage): string | undefined {
  const [, user] = /^\/hooks\/([^/?]+)$/.exec(url) ?? [];
  if (method !== "POST" || user === undefined) return undefined;
  try {
    return decodeURIComponent(user);
  } catch {
    return undefined;
  }
}

/** Undefined if it is too large. */
async function readAll(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes <= MAX_MESSAGE_BYTES) chunks.push(chunk as Buffer);
  }
  return bytes > MAX_MESSAGE_BYTES ? undefined : Buffer.concat(chunks);
}

/** What is wrong with the signature, if something is. */
function check({ headers }: IncomingMessage, raw: Buffer, secret: string | undefined): string | undefined {
  const signed = { "webhook-id": "", "webhook-timestamp": "", "webhook-signature": "" };
  for (const name of Object.keys(signed) as (keyof typeof signed)[]) {
    const value = headers[name];
    if (typeof value !== "string" || value === "") return `${name} is missing`;
    signed[name] = value;
  }
  if (secret === undefined) return undefined;
  try {
    new Webhook(secret).verify(raw, signed, { jsonParse: false });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
