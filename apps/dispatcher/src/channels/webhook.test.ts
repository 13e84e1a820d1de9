// Against real HTTP servers.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { lookup } from "node:dns";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { VirtualClock } from "sluice/testing";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, onTestFinished } from "vitest";
import type { User } from "../model.ts";
import { type Channel, type Message, SendError } from "./channel.ts";
import { webhookChannel, type WebhookOptions } from "./webhook.ts";

const secret = `whsec_${btoa("a secret of twenty-four b")}`;
const signal = new AbortController().signal;

describe("a message", () => {
  it("arrives as JSON, word for word, signed as Standard Webhooks asks", async () => {
    const { url, requests } = await receiver((_, response) => response.writeHead(204).end());
    const body = '{"text": "Grüße, 世界",  "n": 1}';
    expect(await open().send(message("n-17", `${url}/hook?a=b`, body), { signal })).toEqual({ answer: "HTTP 204" });
    const [request] = requests;
    expect([request?.method, request?.url, request?.body]).toEqual(["POST", "/hook?a=b", body]);
    expect(request?.headers).toMatchObject({ "webhook-id": "n-17", "content-type": "application/json" });
    const verified = new Webhook(secret).verify(request?.body ?? "", request?.headers as Record<string, string>);
    expect(verified).toEqual({ text: "Grüße, 世界", n: 1 });
  });

  it("is not sent if its body is not JSON, or its receiver has no usable secret", async () => {
    const { url, requests } = await receiver((_, response) => response.end());
    const unsigned = { ...message("n-1", url), user: { ...message("n-1", url).user, webhook: undefined } };
    const misSigned = { ...unsigned, user: { ...unsigned.user, webhook: { url, secret: "whsec_!" } } };
    for (const bad of [message("n-1", url, "{text: 1}"), message("n-1", url, ""), unsigned, misSigned]) {
      const refused = await failure(open(), bad);
      expect([refused.kind, refused.providerFault]).toEqual(["permanent", false]);
    }
    expect(requests).toEqual([]);
  });

  it("has the origin of its real target as provider, also when it is sent elsewhere", async () => {
    const { url, requests } = await receiver((_, response) => response.end());
    const channel = open({ allowPrivateNetworks: false, rewrite: ({ user }) => `${url}/${user.id}` });
    expect(channel.providerOf("https://receiver.example/a/b?c")).toBe("https://receiver.example");
    expect(channel.providerOf("nonsense")).toBe("nonsense");
    await channel.send(message("n-1", "https://receiver.example/a"), { signal });
    expect(requests.map((request) => request.url)).toEqual(["/user-001"]);
  });
});

describe("what the receiver answers", () => {
  it.each<[number, string, boolean]>([
    [400, "permanent", false],
    [401, "permanent", false],
    [403, "permanent", false],
    [404, "permanent", false],
    [408, "transient", false],
    [409, "transient", false],
    [410, "permanent", false],
    [422, "permanent", false],
    [425, "transient", false],
    [429, "transient", false],
    [500, "transient", true],
    [502, "transient", true],
    [503, "transient", true],
    [504, "transient", true],
  ])("%i is %s", async (status, kind, providerFault) => {
    const { url } = await receiver((_, response) => response.writeHead(status).end("because\r\nof \u0007that"));
    const failed = await failure(open(), message("n-1", url));
    expect([failed.kind, failed.providerFault, failed.retryAfterMs]).toEqual([kind, providerFault, undefined]);
    expect(failed.message).toBe(`HTTP ${status}: because of that`);
  });

  it("C200: 410 and 400 are asked for once; 429 says in how long to ask again", async () => {
    let answer: [status: number, headers?: Record<string, string>] = [410];
    const { url, requests } = await receiver((_, response) => response.writeHead(...answer).end());
    const clock = new VirtualClock({ wallStartAt: Date.parse("2026-03-01T12:00:00Z") });
    const channel = open({ clock });
    expect((await failure(channel, message("n-1", url))).kind).toBe("permanent");
    answer = [400];
    expect((await failure(channel, message("n-2", url))).kind).toBe("permanent");
    expect(requests).toHaveLength(2);
    for (const [status, retryAfter, ms] of [
      [429, "30", 30_000],
      [429, "Sun, 01 Mar 2026 12:00:30 GMT", 30_000],
      [503, "7", 7_000],
      [503, "Sun, 01 Mar 2026 11:00:00 GMT", 0],
      [429, "soon", undefined],
      [429, "-5", undefined],
    ] as const) {
      answer = [status, { "retry-after": retryAfter }];
      expect(await failure(channel, message("n-3", url))).toMatchObject({ kind: "transient", retryAfterMs: ms });
    }
  });

  it("is final when it is a redirect, which nobody follows", async () => {
    const inner = await receiver((_, response) => response.end());
    const { url } = await receiver((_, response) => response.writeHead(307, { location: inner.url }).end());
    const failed = await failure(open(), message("n-1", url));
    expect([failed.kind, failed.providerFault]).toEqual(["permanent", false]);
    expect(failed.message).toBe(`HTTP 307: redirects are not followed, this one leads to ${inner.url}`);
    expect(inner.requests).toEqual([]);
  });

  it("may be endless: the beginning is enough, and the connection ends", async () => {
    const gone = Promise.withResolvers<void>();
    const { url } = await receiver((_, response) => {
      response.once("close", () => gone.resolve());
      response.writeHead(500);
      const flood = (): void => void response.write("flood ".repeat(1_000), (error) => error ?? flood());
      flood();
    });
    const failed = await failure(open(), message("n-1", url));
    expect(failed.message).toMatch(/^HTTP 500: flood flood/);
    expect(failed.message.length).toBeLessThan(300);
    await gone.promise;
  });

  it("stands once its status has come, even if the attempt is aborted before its end", async () => {
    const attempt = new AbortController();
    const gone = Promise.withResolvers<void>();
    const { url } = await receiver((_, response) => {
      response.once("close", () => gone.resolve());
      response.writeHead(200).write("thank you");
    });
    const sent = open().send(message("n-1", url), { signal: attempt.signal });
    await statusToCome();
    attempt.abort(new Error("time is up"));
    await gone.promise;
    expect((await sent).answer).toMatch(/^HTTP 200/);
  });

  it("is nothing when nobody listens or the connection breaks: transient, and the provider's fault", async () => {
    const { url, close } = await receiver((request) => request.socket.destroy());
    const broken = await failure(open(), message("n-1", url));
    expect([broken.kind, broken.providerFault]).toEqual(["transient", true]);
    await close();
    const unheard = await failure(open(), message("n-1", url));
    expect([unheard.kind, unheard.providerFault]).toEqual(["transient", true]);
    expect(unheard.message).toContain("ECONNREFUSED");
  });
});

describe("connections", () => {
  it("are kept and used again, and are no more than allowed", async () => {
    const held: ServerResponse[] = [];
    const three = Promise.withResolvers<void>();
    const { url, connections, requests } = await receiver((_, response) => {
      if (held.length === 3) return response.end();
      held.push(response);
      return held.length === 3 && three.resolve();
    });
    const channel = open({ maxConnections: 3 });
    const sends = Array.from({ length: 10 }, (_, index) => channel.send(message(`n-${index}`, url), { signal }));
    await three.promise;
    expect(requests).toHaveLength(3);
    for (const response of held) response.end();
    await Promise.all(sends);
    expect([requests.length, connections()]).toEqual([10, 3]);
  });

  it("end by themselves when the receiver never answers", async () => {
    const gone = Promise.withResolvers<void>();
    const { url } = await receiver((request) => request.socket.once("close", () => gone.resolve()));
    const failed = await failure(open({ timeoutMs: 50 }), message("n-1", url));
    expect([failed.kind, failed.providerFault]).toEqual(["transient", true]);
    await gone.promise;
  });

  it("end with the abort of what is sent over them", async () => {
    const arrived = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const { url } = await receiver((request) => {
      request.socket.once("close", () => gone.resolve());
      arrived.resolve();
    });
    const attempt = new AbortController();
    const sent = open().send(message("n-1", url), { signal: attempt.signal });
    await arrived.promise;
    attempt.abort(new Error("time is up"));
    await expect(sent).rejects.toBe(attempt.signal.reason);
    await gone.promise;
  });
});

describe("a guarded channel", () => {
  it("connects to no inner address, however it is written", async () => {
    const { url, connections } = await receiver((_, response) => response.end());
    const { port } = new URL(url);
    const names = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0.0.0.0"];
    const written = [
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[::]",
      "[::7f00:1]",
      "[64:ff9b::7f00:1]",
      "[fe80::1]",
      "[fd00::1]",
    ];
    for (const host of [...names, ...written, "10.0.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1"]) {
      const refused = await failure(open({ allowPrivateNetworks: false }), message("n-1", `http://${host}:${port}/`));
      expect([host, refused.kind, refused.providerFault]).toEqual([host, "permanent", false]);
      expect(refused.message).toMatch(/not a public address/);
    }
    expect(connections()).toBe(0);
  });

  it("looks at the address that is connected to, and at no other time", async () => {
    const { url, connections } = await receiver((_, response) => response.end());
    const { port } = new URL(url);
    const asked: string[] = [];
    const rebind: LookupFunction = (hostname, _options, callback) => {
      asked.push(hostname);
      callback(null, [
        { address: "192.0.1.1", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ]);
    };
    const target = message("n-1", `http://rebound.example:${port}/`);
    const refused = await failure(open({ allowPrivateNetworks: false, lookup: rebind }), target);
    expect([refused.kind, refused.message]).toEqual(["permanent", "127.0.0.1 is not a public address"]);
    expect([asked, connections()]).toEqual([["rebound.example"], 0]);
    // The same name, unguarded: it would have been reached.
    await open({ lookup: (_, options, callback) => lookup("127.0.0.1", options, callback) }).send(target, { signal });
    expect(connections()).toBe(1);
  });

  it("calls nothing but the web, and carries no user name", async () => {
    for (const url of ["ftp://a.example/", "file:///etc/passwd", "data:,x", "http://user@a.example/", "nowhere", ""]) {
      for (const allowPrivateNetworks of [true, false]) {
        const refused = await failure(open({ allowPrivateNetworks }), message("n-1", url));
        expect([refused.kind, refused.providerFault]).toEqual(["permanent", false]);
      }
    }
  });
});

it("names option, rule and value of a bad option", () => {
  for (const option of ["maxConnections", "timeoutMs"]) {
    const why = new RangeError(`${option} must be an integer >= 1, got 0`);
    expect(() => webhookChannel({ [option]: 0 })).toThrow(why);
  }
});

/** May reach this machine, unless told otherwise. */
function open(options: WebhookOptions = {}): Channel {
  const channel = webhookChannel({ allowPrivateNetworks: true, ...options });
  onTestFinished(() => channel.close());
  return channel;
}

function message(id: string, url: string, body = "{}"): Message {
  const user: User = { id: "user-001", webhook: { url, secret }, roles: [], repositories: [] };
  return { id, user, address: url, content: { body } };
}

async function failure(channel: Channel, sent: Message): Promise<SendError> {
  const reason: unknown = await channel.send(sent, { signal }).catch((error: unknown) => error);
  if (reason instanceof SendError) return reason;
  throw new Error(`not a SendError: ${String(reason)}`);
}

/** The turn after the next status has reached a channel. */
async function statusToCome(): Promise<void> {
  const seen = Promise.withResolvers<void>();
  const see = (): void => seen.resolve();
  subscribe("undici:request:headers", see);
  await seen.promise;
  unsubscribe("undici:request:headers", see);
  await turn();
}

interface Request {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

interface Receiver {
  readonly url: string;
  readonly requests: readonly Request[];
  readonly connections: () => number;
  readonly close: () => Promise<void>;
}

async function receiver(answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Receiver> {
  const requests: Request[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      answer(request, response);
    });
  });
  server.on("connection", () => (connections += 1));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  onTestFinished(close);
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests, connections: () => connections, close };
}
