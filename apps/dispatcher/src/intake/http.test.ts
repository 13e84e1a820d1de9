import type { Json } from "@sluice/jobs";
import * as fc from "fast-check";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import type { Intake } from "../config/config.ts";
import {
  type Accepted,
  type Event,
  type EventSink,
  IntakeFullError,
  type NotificationHistory,
  type NotificationSummary,
} from "../model.ts";
import { type HistoryReader, type IntakeAnswer, intakeApp, type IntakeAppOptions } from "./http.ts";

const CONFIG: Intake = { capacity: 10, maxBodyBytes: 4_000, maxEventBytes: 500, maxBatch: 5, expanders: 1 };
const SINGLE = "application/cloudevents+json";
const BATCH = "application/cloudevents-batch+json";
const SUMMARY: NotificationSummary = {
  id: "n1",
  user: "ada",
  channel: "email",
  rule: "r",
  status: "delivered",
  reason: undefined,
};
const HISTORY: NotificationHistory = {
  ...SUMMARY,
  event: { id: "1", source: "/s", type: "a" },
  entries: [{ at: 5, kind: "accepted" }],
};

const READER: HistoryReader = {
  history: (id) => (id === "n1" ? HISTORY : undefined),
  ofEvent: (source, id, max) => (source === "/s" && id === "a b" ? Array.from({ length: max }, () => SUMMARY) : []),
};

/** Accepts each event once. */
class Sink implements EventSink {
  readonly events: Event[] = [];
  failure: Error | undefined;
  #calls = 0;
  readonly #known = new Set<string>();

  get calls(): number {
    return this.#calls;
  }

  accept(events: readonly Event[]): Promise<Accepted[]> {
    this.#calls += 1;
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return Promise.resolve(
      events.map((each): Accepted => {
        const key = JSON.stringify([each.source, each.id]);
        if (this.#known.has(key)) return { outcome: "duplicate" };
        this.#known.add(key);
        this.events.push(each);
        return { outcome: "accepted" };
      }),
    );
  }
}

function appWith(options: Partial<IntakeAppOptions> = {}): ReturnType<typeof intakeApp> {
  return intakeApp({
    sink: new Sink(),
    config: CONFIG,
    reader: READER,
    health: () => ({ ok: true, waiting: 3 }),
    log: pino({ enabled: false }),
    ...options,
  });
}

function event(id: string, facts: Readonly<Record<string, Json>> = {}): Readonly<Record<string, Json>> {
  return { specversion: "1.0", id, source: "/s", type: "a", ...facts };
}

async function listed(query: string): Promise<unknown[]> {
  const response = await appWith().request(`/v1/notifications?${query}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { notifications: unknown[] }).notifications;
}

interface Posted {
  readonly type?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

async function post(
  app: ReturnType<typeof intakeApp>,
  body: string | Uint8Array,
  posted: Posted = {},
): Promise<Response> {
  const headers = { "content-type": posted.type ?? SINGLE, ...posted.headers };
  return app.request("/v1/events", { method: "POST", headers, body: body as string });
}

/** The problem document, after a look at its form. */
async function problemOf(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  const document = (await response.json()) as Record<string, unknown>;
  expect(document["status"]).toBe(response.status);
  expect(document["type"]).toMatch(/^urn:sluice:problem:[a-z-]+$/);
  expect(typeof document["title"]).toBe("string");
  expect(typeof document["detail"]).toBe("string");
  return document;
}

describe("one event", () => {
  it("is accepted once, and told to be a duplicate from then on", async () => {
    const sink = new Sink();
    const app = appWith({ sink });
    const first = await post(app, JSON.stringify(event("1", { data: { a: 1 }, time: "2026-01-02T03:04:05Z" })));
    expect(first.status).toBe(202);
    expect(await first.json()).toEqual({
      accepted: 1,
      duplicates: 0,
      refused: 0,
      events: [{ index: 0, source: "/s", id: "1", outcome: "accepted" }],
    });
    const second = await post(app, JSON.stringify(event("1")));
    expect(await second.json()).toMatchObject({ accepted: 0, duplicates: 1, events: [{ outcome: "duplicate" }] });
    expect(sink.events).toEqual([
      { id: "1", source: "/s", type: "a", subject: undefined, time: "2026-01-02T03:04:05Z", data: { a: 1 } },
    ]);
  });

  it("is answered only once it is durable", async () => {
    const durable = Promise.withResolvers<Accepted[]>();
    const asked = Promise.withResolvers<void>();
    const sink: EventSink = { accept: () => (asked.resolve(), durable.promise) };
    let isAnswered = false;
    const answered = post(appWith({ sink }), JSON.stringify(event("1"))).then((response) => {
      isAnswered = true;
      return response;
    });
    await asked.promise;
    expect(isAnswered).toBe(false);
    durable.resolve([{ outcome: "accepted" }]);
    expect((await answered).status).toBe(202);
  });

  it("may come in binary mode: attributes as headers, data as the body", async () => {
    const sink = new Sink();
    const headers = {
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": "/s",
      "ce-type": "a",
      "ce-subject": "%C3%A4%20b",
    };
    const data = { specversion: "not mine", time: "2026-01-02T03:04:05Z", data: 1 };
    const response = await post(appWith({ sink }), JSON.stringify(data), { type: "application/json", headers });
    expect(response.status).toBe(202);
    expect(sink.events).toEqual([{ id: "1", source: "/s", type: "a", subject: "ä b", time: undefined, data }]);
    const empty = await post(appWith({ sink }), "", {
      type: "application/json",
      headers: { ...headers, "ce-id": "2" },
    });
    expect(empty.status).toBe(202);
    expect(sink.events[1]).toMatchObject({ id: "2", data: null });
  });

  it("is refused in binary mode when an attribute is missing or not percent-encoded UTF-8", async () => {
    const headers = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s" };
    const missing = await post(appWith(), "{}", { type: "application/json", headers });
    expect([missing.status, await problemOf(missing)]).toMatchObject([422, { errors: [{ pointer: "#/type" }] }]);
    const odd = await post(appWith(), "{}", { type: "application/json", headers: { ...headers, "ce-type": "%ff" } });
    expect([odd.status, await problemOf(odd)]).toMatchObject([422, { errors: [{ pointer: "#/type" }] }]);
    const broken = await post(appWith(), "{", { type: "application/json", headers: { ...headers, "ce-type": "a" } });
    expect(broken.status).toBe(400);
  });

  it("is refused with each fault at its JSON pointer", async () => {
    const sink = new Sink();
    const response = await post(appWith({ sink }), JSON.stringify({ ...event(""), source: undefined, data: 1 }));
    expect(response.status).toBe(422);
    expect(await problemOf(response)).toMatchObject({
      type: "urn:sluice:problem:invalid-event",
      errors: [
        { pointer: "#/id", detail: 'must have >= 1 characters, got ""' },
        { pointer: "#/source", detail: "is missing" },
      ],
    });
    expect(sink.calls).toBe(0);
  });

  it("is taken up to maxEventBytes, and answered with 413 past it", async () => {
    const padding = CONFIG.maxEventBytes - JSON.stringify(event("1", { data: "" })).length;
    expect((await post(appWith(), JSON.stringify(event("1", { data: "x".repeat(padding) })))).status).toBe(202);
    const response = await post(appWith(), JSON.stringify(event("1", { data: "x".repeat(padding + 1) })));
    expect(response.status).toBe(413);
    expect(await problemOf(response)).toMatchObject({ errors: [{ detail: "must have at most 500 bytes, got 501" }] });
  });
});

describe("a batch", () => {
  it("has its good events accepted and its bad ones reported by index", async () => {
    const sink = new Sink();
    const batch = [event("1"), { id: 2 }, event("3"), event("1"), event("5", { data: "x".repeat(500) })];
    const response = await post(appWith({ sink }), JSON.stringify(batch), { type: BATCH });
    expect(response.status).toBe(202);
    const answer = (await response.json()) as IntakeAnswer;
    expect(answer).toMatchObject({ accepted: 2, duplicates: 1, refused: 2 });
    expect(answer.events.map(({ index, outcome }) => [index, outcome])).toEqual([
      [0, "accepted"],
      [1, "refused"],
      [2, "accepted"],
      [3, "duplicate"],
      [4, "refused"],
    ]);
    expect(answer.events[1]).toMatchObject({ errors: [{ pointer: "#/1/specversion" }, { pointer: "#/1/id" }, {}, {}] });
    expect(answer.events[4]).toMatchObject({ errors: [{ pointer: "#/4" }] });
    expect(sink.events.map(({ id }) => id)).toEqual(["1", "3"]);
    expect(sink.calls).toBe(1);
  });

  it("is refused as a whole when nothing in it is good", async () => {
    const sink = new Sink();
    const response = await post(appWith({ sink }), '[{},"x"]', { type: BATCH });
    expect(response.status).toBe(422);
    const { errors } = await problemOf(response);
    expect((errors as { pointer: string }[]).map(({ pointer }) => pointer)).toContain("#/1");
    expect(sink.calls).toBe(0);
  });

  it("is too large only when everything in it is", async () => {
    const large = event("1", { data: "x".repeat(500) });
    const both = await post(appWith(), JSON.stringify([large, large]), { type: BATCH });
    const one = await post(appWith(), JSON.stringify([large, {}]), { type: BATCH });
    expect([both.status, one.status]).toEqual([413, 422]);
  });

  it("may be empty", async () => {
    const sink = new Sink();
    const response = await post(appWith({ sink }), "[]", { type: BATCH });
    expect([response.status, await response.json()]).toEqual([
      202,
      { accepted: 0, duplicates: 0, refused: 0, events: [] },
    ]);
    expect(sink.calls).toBe(0);
  });

  it("takes maxBatch events and no more, and must be an array", async () => {
    const batch = (count: number): string => JSON.stringify(Array.from({ length: count }, (_, i) => event(`${i}`)));
    expect((await post(appWith(), batch(5), { type: BATCH })).status).toBe(202);
    const large = await post(appWith(), batch(6), { type: BATCH });
    expect([large.status, await problemOf(large)]).toMatchObject([
      413,
      { detail: "a batch must have at most 5 events, got 6" },
    ]);
    expect((await post(appWith(), JSON.stringify(event("1")), { type: BATCH })).status).toBe(422);
    expect((await post(appWith(), batch(1), { type: SINGLE })).status).toBe(422);
  });
});

describe("a body that is no event", () => {
  it.each([
    ["", "must be JSON"],
    ["{", "must be JSON"],
    [Uint8Array.of(0x22, 0xff, 0x22), "must be UTF-8"],
    ["NaN", "must be JSON"],
  ])("is answered with 400: %j", async (body, detail) => {
    const response = await post(appWith(), body);
    expect(response.status).toBe(400);
    expect((await problemOf(response))["detail"]).toContain(detail);
  });

  it.each([
    `${"[".repeat(1_500)}${"]".repeat(1_500)}`,
    JSON.stringify(event("1")).replace('"a"', "1e999"),
    "null",
    '"text"',
    "5",
  ])("is answered with 422: %.40s", async (body) => {
    expect((await post(appWith(), body)).status).toBe(422);
  });

  it.each(["application/json", "text/plain", "", `${SINGLE}; charset=latin1`, "application/cloudevents+xml"])(
    "is answered with 415 as %s",
    async (type) => {
      const response = await post(appWith(), JSON.stringify(event("1")), { type });
      expect(response.status).toBe(415);
      await problemOf(response);
    },
  );

  it("is answered with 415 when it is compressed", async () => {
    const headers = { "content-encoding": "gzip" };
    expect((await post(appWith(), JSON.stringify(event("1")), { headers })).status).toBe(415);
    const plain = { "content-encoding": "identity" };
    const type = `${SINGLE.toUpperCase()}; Charset="UTF-8"`;
    expect((await post(appWith(), JSON.stringify(event("1")), { type, headers: plain })).status).toBe(202);
  });
});

describe("a store that takes nothing", () => {
  it("makes it 429 when there is no room, with whole seconds to wait", async () => {
    const sink = new Sink();
    const app = appWith({ sink });
    for (const [ms, seconds] of [
      [1, "1"],
      [1_000, "1"],
      [1_001, "2"],
      [0, "1"],
    ] as const) {
      sink.failure = new IntakeFullError(10, ms);
      const response = await post(app, JSON.stringify(event("1")));
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, seconds]);
      await problemOf(response);
    }
    sink.failure = undefined;
    expect((await post(app, JSON.stringify(event("1")))).status).toBe(202);
  });

  it("makes it 503 when it fails, without telling why to the outside", async () => {
    const sink = new Sink();
    sink.failure = new Error("disk full at /secret/path");
    const response = await post(appWith({ sink }), JSON.stringify(event("1")));
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(JSON.stringify(await problemOf(response))).not.toContain("secret");
  });
});

describe("reading", () => {
  it("gives a notification's history, and 404 for one that isn't there", async () => {
    const app = appWith();
    const response = await app.request("/v1/notifications/n1");
    expect([response.status, await response.json()]).toEqual([200, JSON.parse(JSON.stringify(HISTORY))]);
    const missing = await app.request("/v1/notifications/n2");
    expect([missing.status, await problemOf(missing)]).toMatchObject([404, { type: "urn:sluice:problem:not-found" }]);
  });

  it("lists the notifications of an event, 100 of them unless told otherwise", async () => {
    expect(await listed("source=/s&event=a%20b&limit=2")).toEqual(JSON.parse(JSON.stringify([SUMMARY, SUMMARY])));
    expect((await listed("source=%2Fs&event=a+b")).length).toBe(100);
    expect((await listed("source=/s&event=a+b&limit=1000")).length).toBe(1_000);
    expect(await listed("source=/s&event=other")).toEqual([]);
  });

  it.each([
    "",
    "source=/s",
    "event=1",
    ...["0", "1001", "-1", "x", ""].map((limit) => `source=/s&event=1&limit=${limit}`),
  ])("answers a list that is asked for with %j with 400", async (query) => {
    const response = await appWith().request(`/v1/notifications?${query}`);
    expect(response.status).toBe(400);
    await problemOf(response);
  });

  it("tells its health, with 503 when it isn't well", async () => {
    const well = await appWith().request("/healthz");
    expect([well.status, await well.json()]).toEqual([200, { ok: true, waiting: 3 }]);
    const ill = await appWith({ health: () => ({ ok: false }) }).request("/healthz");
    expect([ill.status, await ill.json()]).toEqual([503, { ok: false }]);
  });

  it.each([
    ["PUT", "/v1/events", "POST"],
    ["GET", "/v1/events", "POST"],
    ["DELETE", "/v1/notifications/n1", "GET, HEAD"],
    ["POST", "/healthz", "GET, HEAD"],
    ["OPTIONS", "/healthz", "GET, HEAD"],
  ])("answers %s %s with 405 and what is allowed", async (method, path, allow) => {
    const response = await appWith().request(path, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, allow]);
    await problemOf(response);
  });

  it.each(["/", "/v1", "/v1/notifications/n1/more", "/%ff"])("answers %s with 404", async (path) => {
    const response = await appWith().request(path);
    expect(response.status).toBe(404);
    await problemOf(response);
  });

  it("answers what fails in here with 500, without saying what", async () => {
    const reader = {
      ...READER,
      history: (): never => {
        throw new Error("disk full at /secret/path");
      },
    };
    const response = await appWith({ reader }).request("/v1/notifications/n1");
    expect(response.status).toBe(500);
    expect(JSON.stringify(await problemOf(response))).not.toContain("secret");
  });
});

it("answers whatever JSON with 202 or 4xx, and accepts every good event of a batch", async () => {
  const config = { ...CONFIG, maxBodyBytes: 1_000_000, maxEventBytes: 100_000, maxBatch: 100 };
  const anything = fc.oneof(fc.jsonValue(), fc.record({ specversion: fc.constant("1.0"), id: fc.jsonValue() }));
  const element = fc.oneof(fc.constant("good" as const), anything);
  const holds = fc.asyncProperty(
    fc.array(element, { maxLength: 10 }),
    fc.constantFrom(SINGLE, BATCH),
    async (list, type) => {
      const sink = new Sink();
      const app = appWith({ sink, config });
      const batch = list.map((each, i) => (each === "good" ? event(`good ${i}`, { data: { each } }) : each));
      const sent = type === BATCH ? batch : batch[0];
      const response = await post(app, JSON.stringify(sent ?? null), { type });
      expect([202, 400, 413, 422]).toContain(response.status);
      const good = (type === BATCH ? list : list.slice(0, 1)).flatMap((each, i) =>
        each === "good" ? [`good ${i}`] : [],
      );
      expect(sink.events.map(({ id }) => id).filter((id) => id.startsWith("good "))).toEqual(good);
      if (good.length > 0) expect(response.status).toBe(202);
    },
  );
  await fc.assert(holds, { numRuns: 150 });
});

it("answers whatever bytes with 202 or 4xx", async () => {
  const app = appWith();
  const types = fc.constantFrom(SINGLE, BATCH, "application/json", "text/plain");
  const holds = fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), types, async (bytes, type) => {
    expect([202, 400, 413, 415, 422]).toContain((await post(app, bytes, { type })).status);
  });
  await fc.assert(holds, { numRuns: 150 });
});
