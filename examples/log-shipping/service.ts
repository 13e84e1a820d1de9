/** A service that logs each request, and ends in order: no new requests first, the logs last. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, shutdown, type Shutdown } from "sluice";
import type { LogShipper } from "./log-shipping.ts";

export interface ServiceOptions {
  readonly signals?: readonly string[] | undefined;
  /** What the logs may take at the end. @default 3_000 */
  readonly flushMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

export interface Service {
  readonly url: string;
  readonly stopping: Shutdown;
}

export async function startService(logs: LogShipper, options: ServiceOptions = {}): Promise<Service> {
  const { signals, flushMs = 3_000, clock } = options;
  const stopping = shutdown({ signals, clock });
  stopping.add("logs", logs, { phase: "close", timeoutMs: flushMs }); // first in, so last to stop: all others log
  const server = createServer((request, response) => {
    logs.log(`GET ${request.url}`);
    response.end("done");
  });
  stopping.add("http", server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stopping };
}
