import { once } from "node:events";
import { connect } from "node:net";
import { Hono } from "hono";
import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { listen } from "./server.ts";

it("hangs up at a stop on a client that never ends its request", async () => {
  const clock = new VirtualClock();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  const app = new Hono().post("/", async (c) => {
    onAsked();
    return c.text(await c.req.text().catch(() => "it broke off"));
  });
  const server = await listen(app, "127.0.0.1", 0, clock);
  const client = connect(Number(new URL(server.address).port), "127.0.0.1");
  client.on("error", () => {}); // it is hung up on
  client.write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\nonly this");
  await asked;
  const closed = server.close();
  const hungUp = once(client, "close");
  await clock.advance(2_999);
  expect(client.destroyed).toBe(false);
  await clock.advance(1);
  await Promise.all([closed, hungUp]);
  expect(clock.timers).toBe(0);
});
