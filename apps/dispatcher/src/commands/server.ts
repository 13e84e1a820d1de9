/** The dispatcher's HTTP side, listening. */
import type { Server } from "node:http";
import { serve } from "@hono/node-server";
import type { Hono } from "hono";
import { type Clock, shutdown } from "sluice";
import { problem } from "../intake/problem.ts";
import { CommandError, systemReason } from "./failure.ts";

export interface Listening {
  /** `http://127.0.0.1:4180` */
  readonly address: string;
  /** Takes nothing new, lets what is under way end, and hangs up on what has not after 3 seconds. Idempotent. */
  close(): Promise<void>;
}

/** A client that is slow, or has forgotten us, must not hold up a stop. */
const CLOSE_MS = 3_000;

export async function listen(app: Hono, host: string, port: number, clock?: Clock): Promise<Listening> {
  const stopping = shutdown({ timeoutMs: CLOSE_MS, phaseMs: { intake: CLOSE_MS }, clock });
  const fetch = (request: Request): Response | Promise<Response> =>
    stopping.signal.aborted ? problem("store-unavailable", "the dispatcher is stopping") : app.fetch(request);
  const { promise: bound, resolve, reject } = Promise.withResolvers<number>();
  const server = serve({ fetch, hostname: host, port }, (info) => resolve(info.port)) as Server;
  server.once("error", reject);
  const actual = await bound.catch((error: unknown) => {
    const hint = port === 0 ? "" : "; --port 0 takes any that is free";
    throw new CommandError(`can't listen on ${host}, port ${port}: ${systemReason(error)}${hint}`, 1, { cause: error });
  });
  stopping.add("http", server);
  return {
    address: `http://${host.includes(":") ? `[${host}]` : host}:${actual}`,
    async close() {
      await stopping.stop();
    },
  };
}
