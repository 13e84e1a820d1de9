import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { Deadline } from "../clock/deadline.ts";
import { CircuitOpenError, DeadlineError, HttpStatusError, TimeoutError } from "../errors.ts";
import type { Policy } from "../policy.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { fetchPolicy, type FetchPolicyOptions, type PolicyFetch } from "./fetch-policy.ts";
import { RetryBudget } from "./retry-budget.ts";

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly body: string;
}

interface Stage {
  readonly url: string;
  readonly seen: readonly Seen[];
  /** Of the retries, as they were told. */
  readonly waits: readonly number[];
  readonly clock: VirtualClock;
  readonly fetch: PolicyFetch;
}

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
});

/** A server that answers its requests in turn, the last answer for all others, and a policy whose waits take no time. */
async function open(answers: readonly RequestListener[], options: FetchPolicyOptions = {}): Promise<Stage> {
  const clock = new VirtualClock({ wallStartAt: Date.UTC(2026, 0) });
  const seen: Seen[] = [];
  const waits: number[] = [];
  const server = createServer((request, response) => {
    void hear(request).then((heard) => {
      const answer = answers[Math.min(seen.length, answers.length - 1)];
      seen.push(heard);
      return answer?.(request, response);
    });
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const fetch = fetchPolicy({
    clock,
    random: () => 1,
    onRetry({ waitMs }) {
      waits.push(waitMs);
      void turn().then(() => clock.advance(waitMs));
    },
    ...options,
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen, waits, clock, fetch };
}

async function hear(request: IncomingMessage): Promise<Seen> {
  const { method, url, headers } = request;
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return { method, url, key: headers["idempotency-key"] as string | undefined, body: Buffer.concat(parts).toString() };
}

function status(code: number, headers: Record<string, string> = {}, body = `${code}`): RequestListener {
  return (_, response) => void response.writeHead(code, headers).end(body);
}

const reset: RequestListener = (request) => request.socket.resetAndDestroy();
const begin: RequestListener = (_, response) => void response.writeHead(200).write("part");
const hangUp: RequestListener = (request) => request.socket.destroy();

it("J31: tries again what is unavailable, and hands on the response that counts", async () => {
  const { url, seen, waits, fetch } = await open([status(503), status(502), status(504), status(200, {}, "at last")]);
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([200, "at last"]);
  expect([seen.length, waits]).toEqual([4, [100, 200, 400]]);
  expect(fetch.stats()).toMatchObject({ attempts: 4, retries: 3, waiting: 0, unrepeatable: 0 });
});

it("hands on the last response as it is when there is to be no other, and its body can be read", async () => {
  const { url, seen, fetch } = await open([status(503, {}, "no"), status(503, {}, "still no")], { retries: 1 });
  const response = await fetch(url);
  expect([response.status, await response.text(), seen.length]).toEqual([503, "still no", 2]);
});

it.each([400, 401, 404, 409, 500])("J33, J34, J36: does not try again after a %d", async (code) => {
  const { url, seen, fetch } = await open([status(code)]);
  expect([(await fetch(url)).status, seen.length]).toEqual([code, 1]);
});

it.each([
  ["seconds", "7"],
  ["an HTTP date", "Thu, 01 Jan 2026 00:00:07 GMT"],
])("J30: waits for as long as Retry-After asks for, in %s", async (_, retryAfter) => {
  const { url, waits, fetch } = await open([status(429, { "retry-after": retryAfter }), status(200)]);
  expect([(await fetch(url)).status, waits]).toEqual([200, [7_000]]);
});

it.each([
  ["resets the connection", reset],
  ["hangs up without an answer", hangUp],
])("J32: tries again when the server %s", async (_, misbehave) => {
  const { url, seen, fetch } = await open([misbehave, status(200)]);
  expect([(await fetch(url)).status, seen.length]).toEqual([200, 2]);
});

it("J32: tries again when nobody listens, and rejects with the last error as it was", async () => {
  const { url, fetch, waits } = await open([status(200)]);
  const [server] = servers;
  server?.close();
  await expect(fetch(url)).rejects.toMatchObject({ message: "fetch failed", cause: { code: "ECONNREFUSED" } });
  expect(waits.length).toBe(3);
});

it("J45: gives each attempt a limit of its own, and hangs up when it is reached", async () => {
  const { promise: hanging, resolve: hang } = Promise.withResolvers<ServerResponse>();
  const { url, clock, fetch } = await open([(_, response) => hang(response), status(200)], { attemptTimeoutMs: 500 });
  const result = fetch(url);
  const closed = once(await hanging, "close");
  await clock.advance(500);
  await closed;
  expect((await result).status).toBe(200);
});

it("J46: ends with a TimeoutError when all attempts together take too long", async () => {
  const { promise: hanging, resolve: hang } = Promise.withResolvers<ServerResponse>();
  const { url, clock, fetch } = await open([(_, response) => hang(response)], { deadline: 2_000 });
  const result = expect(fetch(url)).rejects.toThrow(TimeoutError);
  const closed = once(await hanging, "close");
  await clock.advance(2_000);
  await Promise.all([result, closed]);
  expect(clock.timers).toBe(0);
});

it("J46: rejects with DeadlineError instead of waiting for longer than there is time, and hangs up", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<ServerResponse>();
  const { url, seen, clock, fetch } = await open([
    (_, response) => {
      response.writeHead(503, { "retry-after": "60" }).write("busy");
      answer(response);
    },
  ]);
  const failed = fetch(url).catch((error: unknown) => error);
  const closed = once(await answered, "close");
  const error = await failed;
  expect(error).toBeInstanceOf(DeadlineError);
  expect(error).toMatchObject({ leftMs: 30_000, neededMs: 60_000, cause: { status: 503, retryAfterMs: 60_000 } });
  await closed;
  expect([seen.length, clock.timers]).toEqual([1, 0]);
});

it("J29: does not repeat a POST without a key, whatever happened to it", async () => {
  for (const fail of [status(503), reset]) {
    const { url, seen, fetch } = await open([fail, status(200)]);
    const result = await fetch(url, { method: "post", body: "1" }).catch((error: unknown) => error);
    expect([(result as Response).status ?? (result as Error).message, seen.length]).toEqual([
      fail === reset ? "fetch failed" : 503,
      1,
    ]);
    expect(fetch.stats()).toMatchObject({ attempts: 1, retries: 0, unrepeatable: 1 });
  }
});

it.each([
  ["in the call", { idempotencyKey: "order-7" }, {}],
  ["in its header", { headers: { "Idempotency-Key": "order-7" } }, {}],
  ["made by the policy", {}, { makeKeys: true }],
])("J29: repeats a POST with a key %s, and sends the same each time", async (_, init, options) => {
  const { url, seen, fetch } = await open([status(503), reset, status(201)], options);
  const response = await fetch(url, { method: "POST", body: "1", ...init });
  const [{ key } = { key: undefined }] = seen;
  expect(response.status).toBe(201);
  expect(seen).toEqual(Array.from({ length: 3 }, () => ({ method: "POST", url: "/", key, body: "1" })));
  expect(key).toMatch("makeKeys" in options ? /^[\da-f-]{36}$/ : /^order-7$/);
});

it("J29: takes an empty key for none", async () => {
  const headers = { "Idempotency-Key": "" };
  const { url, seen, fetch } = await open([status(503), status(200)]);
  expect((await fetch(url, { method: "POST", headers, body: "1" })).status).toBe(503);
  expect(seen).toHaveLength(1);
  const made = await open([status(503), status(200)], { makeKeys: true });
  expect((await made.fetch(made.url, { method: "POST", headers, body: "1" })).status).toBe(200);
  expect(made.seen[0]?.key).toMatch(/^[\da-f-]{36}$/);
  await expect(fetch(url, { method: "POST", idempotencyKey: "" })).rejects.toThrow(RangeError);
});

it("makes no key for what is idempotent without one", async () => {
  const { url, seen, fetch } = await open([status(503), status(200)], { makeKeys: true });
  await fetch(url, { method: "put", body: "1" });
  expect(seen.map(({ key }) => key)).toEqual([undefined, undefined]);
});

it.each([
  ["a stream", () => new Blob(["once"]).stream()],
  ["an async iterable", () => (async function* () { yield Buffer.from("once"); })()], // prettier-ignore
])("makes one attempt with %s as body, which could not be sent again", async (_, body) => {
  const { url, seen, fetch } = await open([status(503), status(200)]);
  const init = { method: "PUT", body: body(), duplex: "half" } as RequestInit;
  expect([(await fetch(url, init)).status, seen.map((each) => each.body)]).toEqual([503, ["once"]]);
});

it("takes a Request, and repeats it if it has no body", async () => {
  const { url, seen, fetch } = await open([status(503), status(200), status(503), status(200)]);
  expect((await fetch(new Request(`${url}a`, { headers: { "idempotency-key": "7" } }))).status).toBe(200);
  expect((await fetch(new Request(`${url}b`, { method: "PUT", body: "b" }))).status).toBe(503);
  expect(seen.map((each) => [each.url, each.key])).toEqual([["/a", "7"], ["/a", "7"], ["/b", undefined]]); // prettier-ignore
});

it("follows the redirect of a POST with its key and body, and repeats the whole way", async () => {
  const { url, seen, fetch } = await open([status(307, { location: "/moved" }), status(503), status(308, { location: "/moved" }), status(201)]); // prettier-ignore
  const response = await fetch(url, { method: "POST", body: "1", idempotencyKey: "k" });
  expect([response.status, response.redirected]).toEqual([201, true]);
  expect(seen.map((each) => [each.method, each.url, each.key, each.body])).toEqual(
    ["/", "/moved", "/", "/moved"].map((path) => ["POST", path, "k", "1"]),
  );
});

it("hangs up on the body of each response that it does not hand on", async () => {
  const closed: Promise<unknown>[] = [];
  const endless: RequestListener = (_, response) => {
    response.writeHead(503).write("and so on");
    closed.push(once(response, "close"));
  };
  const { url, fetch } = await open([endless, endless, status(200)]);
  expect((await fetch(url)).status).toBe(200);
  await Promise.all(closed);
  expect(closed.length).toBe(2);
});

it("cancels the body of each response that it does not hand on, also where fetch ignores its signal", async () => {
  const cancelled: number[] = [];
  const clock = new VirtualClock();
  let attempts = 0;
  const send = (): Promise<Response> => {
    const id = (attempts += 1);
    const body = new ReadableStream({ cancel: () => void cancelled.push(id) });
    return Promise.resolve(
      new Response(body, { status: 503, headers: { "retry-after": attempts === 3 ? "60" : "0" } }),
    );
  };
  const result = expect(fetchPolicy({ fetch: send, clock })("http://localhost/")).rejects.toThrow(DeadlineError);
  await clock.advance(1_000);
  await result;
  expect(cancelled).toEqual([1, 2, 3]);
});

it("hangs up on a response that comes after the attempt was given up, by a fetch that ignores its signal", async () => {
  const { promise: late, resolve: arrive } = Promise.withResolvers<Response>();
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>();
  const clock = new VirtualClock();
  const fetch = fetchPolicy({ fetch: () => late, attemptTimeoutMs: 50, retries: 0, clock });
  const result = expect(fetch("http://localhost/")).rejects.toThrow(TimeoutError);
  await clock.advance(50);
  await result;
  arrive(new Response(new ReadableStream({ cancel })));
  await cancelled;
});

const refusal = new Error("by another");

it.each<[string, FetchPolicyOptions]>([
  ["classify", { classify: refuse }],
  ["backoff", { backoff: refuse }],
  ["the budget", { budget: { onCall() {}, trySpend: refuse } }],
  [
    "what is around",
    { around: { run: (fn, options) => Promise.resolve(fn({ signal: options?.signal })).catch(refuse) } },
  ],
])("cancels the body of a response if %s ends the call with another error", async (_, options) => {
  let cancelled = 0;
  const body = new ReadableStream({ cancel: () => void (cancelled += 1) });
  const send = (): Promise<Response> => Promise.resolve(new Response(body, { status: 503 }));
  await expect(fetchPolicy({ fetch: send, ...options })("http://localhost/")).rejects.toBe(refusal);
  expect(cancelled).toBe(1);
});

it.each([200, 503])(
  "cancels the body of a %d that the caller's abort overtakes on its way, in any turn",
  async (code) => {
    const ends: boolean[] = [];
    for (let turns = 0; turns < 20; turns += 1) {
      let cancelled = false;
      const body = new ReadableStream({ cancel: () => void (cancelled = true) });
      const { promise, resolve } = Promise.withResolvers<Response>();
      const call = new AbortController();
      const result = fetchPolicy({ fetch: () => promise, retries: 0 })("http://localhost/", call);
      const isHandedOn = result.then(
        () => true,
        () => false,
      );
      await turn();
      resolve(new Response(body, { status: code }));
      for (let left = turns; left > 0; left -= 1) await Promise.resolve();
      call.abort();
      ends.push(await isHandedOn);
      await turn();
      expect(cancelled).toBe(!ends.at(-1));
    }
    expect([ends[0], ends.at(-1)]).toEqual([false, true]);
  },
);

it("leaves the body to whoever is around and makes another response of it", async () => {
  const around: Policy = {
    run: async (fn, options) => new Response(((await fn({ signal: options?.signal })) as Response).body) as never,
  };
  expect(await (await fetchPolicy({ fetch: sayOk, around })("http://localhost/")).text()).toBe("ok");
});

it("takes null for no signal, as fetch does, also with a request that has one", async () => {
  const call = new AbortController();
  const request = new Request("http://localhost/", { signal: call.signal });
  call.abort();
  expect((await fetchPolicy({ fetch: sayOk })(request, { signal: null })).status).toBe(200);
});

it("ends the body at the caller's abort, as fetch does, but not at a limit", async () => {
  const { url, clock, fetch } = await open([begin], { attemptTimeoutMs: 100, deadline: 200 });
  const call = new AbortController();
  const { body } = await fetch(url, { signal: call.signal });
  const reader = body?.getReader();
  await clock.advance(1_000);
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("part");
  const rest = reader?.read();
  call.abort(new Error("gone"));
  await expect(rest).rejects.toBe(call.signal.reason);
});

it("J48: tells the server how much time is left, less for each attempt", async () => {
  const told: unknown[] = [];
  const busy: RequestListener = (request, response) => {
    told.push(request.headers["deadline-ms"]);
    response.writeHead(503, { "retry-after": "2" }).end();
  };
  const { url, clock, fetch } = await open([busy], { sendDeadline: true, retries: 2, deadline: 9_000 });
  await fetch(url);
  using deadline = Deadline.after(4_500, { clock });
  await fetch(url, { deadline });
  expect(told).toEqual(["9000", "7000", "5000", "4500", "2500", "500"]);
  await fetch(url, { deadline: Infinity, idempotencyKey: "k" });
  expect(told.slice(6)).toEqual([undefined, undefined, undefined]);
});

it("C099: a breaker around each attempt counts all of them, and ends the retry once it is open", async () => {
  const around = new CircuitBreaker({ failures: 2 });
  const { url, seen, fetch } = await open([status(503)], { around });
  await expect(fetch(url)).rejects.toThrow(CircuitOpenError);
  expect(seen.length).toBe(2);
});

it("J41: spends a budget that others share", async () => {
  const budget = new RetryBudget({ ratio: 1, minPerSecond: 0, clock: new VirtualClock() });
  const { url, seen, fetch } = await open([status(503)], { budget });
  expect((await fetch(url)).status).toBe(503);
  expect(seen.length).toBe(2);
});

it.each(["Failed to fetch", "NetworkError when attempting to fetch resource.", "Load failed"])(
  "tries again when a browser says that the network failed: %s",
  async (message) => {
    let attempts = 0;
    const send = (): Promise<Response> => {
      attempts += 1;
      return attempts === 1 ? Promise.reject(new TypeError(message)) : Promise.resolve(new Response("ok"));
    };
    const clock = new VirtualClock();
    const result = fetchPolicy({ fetch: send, clock })("http://localhost/");
    await clock.advance(100);
    expect(await (await result).text()).toBe("ok");
  },
);

it("shows policies around an attempt the status as an error, and lets them and classify decide", async () => {
  const errors: unknown[] = [];
  const { url, seen, fetch } = await open([status(500), status(200)], {
    classify(error) {
      errors.push(error);
      return "retry";
    },
  });
  expect([(await fetch(url)).status, seen.length]).toEqual([200, 2]);
  expect(errors).toEqual([expect.any(HttpStatusError)]);
  expect(errors[0]).toMatchObject({ code: "HTTP_STATUS", status: 500, retryAfterMs: undefined });
});

it("rejects for bad options and calls, and never throws", async () => {
  for (const bad of [{ retries: -1 }, { attemptTimeoutMs: 0 }, { deadline: -1 }, { baseMs: Number.NaN }])
    expect(() => fetchPolicy(bad)).toThrow(RangeError);
  expect(() => fetchPolicy({ attemptTimeoutMs: 0 })).toThrow("attemptTimeoutMs must be >= 1, got 0");
  expect(() => fetchPolicy({ fetch: 5 as never })).toThrow("fetch must be a function, got number");
  expect(() => fetchPolicy({ around: {} as never })).toThrow("around.run must be a function, got undefined");
  const { fetch } = await open([status(200)]);
  await expect(fetch("not a URL")).rejects.toThrow(TypeError);
  const numbered = { method: "POST", idempotencyKey: 5 as never };
  await expect(fetch("http://localhost/", numbered)).rejects.toThrow("idempotencyKey must be a string, got number");
  for (const deadline of [-1, Number.NaN])
    await expect(fetch("http://localhost/", { deadline })).rejects.toThrow(RangeError);
  for (const deadline of ["5000", null, true] as unknown as number[])
    await expect(fetch("http://localhost/", { deadline })).rejects.toThrow(TypeError);
  await expect(fetch("http://localhost/", { headers: { "\n": "" } })).rejects.toThrow(TypeError);
});

const cases = abortCases({
  name: "A fetch with a policy, in an attempt that ignores its signal,",
  lacks: { timeoutMs: "it has limits of its own" },
  open(clock) {
    const running: ((response: Response) => void)[] = [];
    const send = (): Promise<Response> => new Promise((resolve) => void running.push(resolve));
    const fetch = fetchPolicy({ fetch: send, clock });
    return {
      call: ({ signal }) => fetch("http://localhost/", { signal } as RequestInit),
      satisfy: () => running.shift()?.(new Response("ok")),
      state: () => ({ waiting: fetch.stats().waiting }),
    };
  },
});
for (const { title, run } of cases) if (!title.includes("bad signal")) it(title, run); // to fetch, null is no signal

function sayOk(): Promise<Response> {
  return Promise.resolve(new Response("ok"));
}

function refuse(): never {
  throw refusal;
}
