/** The dispatcher's HTTP side, listening. */
import type { Server } from "node:http";
import { serve } from "@hono/node-server";
import type { Hono } from "hono";
import { type Clock, systemClock } from "sluice";
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

export async function listen(app: Hono, host: string, port: number, clock: Clock = systemClock): Promise<Listening> {
  let isClosing = false;
  const fetch = (request: Request): Response | Promise<Response> =>
    isClosing ? problem("store-unavailable", "the dispatcher is stopping") : app.fetch(request);
  const { promise: bound, resolve, reject } = Promise.withResolvers<number>();
  const server = serve({ fetch, hostname: host, port }, (info) => resolve(info.port)) as Server;
  server.once("error", reject);
  const actual = await bound.catch((error: unknown) => {
    const hint = port === 0 ? "" : "; --port 0 takes any that is free";
    throw new CommandError(`can't listen on ${host}, port ${port}: ${systemReason(error)}${hint}`, 1, { cause: error });
  });
  let closed: Promise<void> | undefined;
  return {
    address: `http://${host.includes(":") ? `[${host}]` : host}:${actual}`,
    close() {
      isClosing = true;
      return (closed ??= new Promise((done) => {
        const timer = clock.setTimer(CLOSE_MS, { onTimer: () => server.closeAllConnections() });
        server.close(() => {
          timer.cancel();
          done();
        });
      }));
    },
  };
}
