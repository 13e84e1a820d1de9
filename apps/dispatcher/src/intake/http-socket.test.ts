import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { serve } from "@hono/node-server";
import { pino } from "pino";
import { afterEach, expect, it } from "vitest";
import type { Intake } from "../config/config.ts";
import type { Accepted, Event, EventSink } from "../model.ts";
import { intakeApp } from "./http.ts";

const CONFIG: Intake = { capacity: 10, maxBodyBytes: 4_000, maxEventBytes: 500, maxBatch: 5, expanders: 1 };
const TYPE = "application/cloudevents+json";

class Sink implements EventSink {
  readonly ids: string[] = [];

  accept(events: readonly Event[]): Promise<Accepted[]> {
    this.ids.push(...events.map(({ id }) => id));
    return Promise.resolve(events.map(() => ({ outcome: "accepted" })));
  }
}

function textOf(id: string): string {
  return JSON.stringify({ specversion: "1.0", id, source: "/s", type: "a" });
}

async function open(port: number, head: readonly string[]): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(["POST /v1/events HTTP/1.1", "Host: localhost", `Content-Type: ${TYPE}`, ...head, "", ""].join("\r\n"));
  return socket;
}

/** The status line, as soon as it has come. */
async function statusOf(socket: Socket): Promise<number> {
  let text = "";
  for await (const part of socket) {
    text += String(part);
    const [, status] = /^HTTP\/1\.1 (\d+) /.exec(text) ?? [];
    if (status !== undefined) return Number(status);
  }
  throw new Error(`the server hung up after ${JSON.stringify(text)}`);
}

/** Whether it ended well or broke off. */
function closed(request: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => void request.once("close", resolve));
}

function chunk(bytes: number): string {
  return `${bytes.toString(16)}\r\n${" ".repeat(bytes)}\r\n`;
}

let server: Server | undefined;

afterEach(async () => {
  if (server === undefined) return;
  server.closeAllConnections();
  await new Promise((resolve) => server?.close(resolve));
  server = undefined;
});

async function listen(sink: EventSink = new Sink()): Promise<number> {
  const app = intakeApp({
    sink,
    config: CONFIG,
    reader: { history: () => undefined, ofEvent: () => [] },
    health: () => ({ ok: true }),
    log: pino({ enabled: false }),
  });
  const started = Promise.withResolvers<AddressInfo>();
  server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, started.resolve) as Server;
  return (await started.promise).port;
}

it("accepts an event that comes in pieces", async () => {
  const sink = new Sink();
  const socket = await open(await listen(sink), ["Transfer-Encoding: chunked"]);
  const text = textOf("1");
  for (const letter of text) socket.write(`1\r\n${letter}\r\n`);
  socket.write("0\r\n\r\n");
  expect(await statusOf(socket)).toBe(202);
  expect(sink.ids).toEqual(["1"]);
});

it("answers 413 to a length that is too great before a byte of the body has come", async () => {
  const port = await listen();
  const socket = await open(port, [`Content-Length: ${CONFIG.maxBodyBytes + 1}`]);
  expect(await statusOf(socket)).toBe(413);
});

it("answers 413 to a body of no told length in the moment it passes the bound, and never sees its end", async () => {
  const sink = new Sink();
  const port = await listen(sink);
  const socket = await open(port, ["Transfer-Encoding: chunked"]);
  socket.write(chunk(CONFIG.maxBodyBytes));
  socket.write(chunk(1));
  expect(await statusOf(socket)).toBe(413);
  expect(sink.ids).toEqual([]);
});

it("takes a body of exactly the bound", async () => {
  const socket = await open(await listen(), ["Transfer-Encoding: chunked"]);
  const text = textOf("1");
  socket.write(`${text.length.toString(16)}\r\n${text}\r\n${chunk(CONFIG.maxBodyBytes - text.length)}0\r\n\r\n`);
  expect(await statusOf(socket)).toBe(202);
});

it.each([["Content-Length: 1000"], ["Transfer-Encoding: chunked"]])(
  "accepts nothing of a request that breaks off midway (%s), and serves the next",
  async (length) => {
    const sink = new Sink();
    const port = await listen(sink);
    const requested = server === undefined ? undefined : once(server, "request");
    const socket = await open(port, [length]);
    const text = textOf("1");
    socket.write(length.startsWith("C") ? text : `${text.length.toString(16)}\r\n${text}\r\n`);
    const [incoming] = (await requested) as [NodeJS.ReadableStream];
    const broken = closed(incoming);
    socket.destroy();
    await broken;
    const response = await fetch(`http://127.0.0.1:${port}/v1/events`, {
      method: "POST",
      headers: { "content-type": TYPE },
      body: textOf("2"),
    });
    expect(response.status).toBe(202);
    expect(sink.ids).toEqual(["2"]);
  },
);

it("turns away with 429 what would pass the bound of all bodies together, until there is room again", async () => {
  const port = await listen();
  const seen: NodeJS.ReadableStream[] = [];
  const url = `http://127.0.0.1:${port}/v1/events`;
  const send = (): Promise<Response> =>
    fetch(url, { method: "POST", headers: { "content-type": TYPE }, body: textOf("1") });
  server?.on("request", (request) => seen.push(request));
  const sockets = await Promise.all(Array.from({ length: 16 }, () => open(port, ["Transfer-Encoding: chunked"])));
  for (const socket of sockets) socket.write(chunk(CONFIG.maxBodyBytes));
  let response = await send();
  while (response.status === 202) response = await send(); // until the server has read what was written
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, "1"]);
  const ended = seen.slice(0, 16).map(closed);
  for (const socket of sockets) socket.destroy();
  await Promise.all(ended);
  while (response.status === 429) response = await send();
  expect(response.status).toBe(202);
});

it("answers HEAD as GET, without the body", async () => {
  const port = await listen();
  const response = await fetch(`http://127.0.0.1:${port}/healthz`, { method: "HEAD" });
  expect([response.status, await response.text()]).toEqual([200, ""]);
});
