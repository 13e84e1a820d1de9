import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { type Clock, systemClock } from "sluice";
import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { webhookChannel } from "../channels/webhook.ts";
import { channelForms } from "../channels/forms.ts";
import { SendError } from "../channels/channel.ts";
import { parseConfig } from "../config/parse.ts";
import type { Config } from "../config/config.ts";
import { sinkChannel, type SinkChannelOptions } from "../inbox/sink-channel.ts";
import type { Event, HistoryEntry } from "../model.ts";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";

const SECRET = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;

let folder: string;
let file: string;
const open: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "dispatcher-"));
  file = join(folder, "dispatcher.sqlite");
});

afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
  rmSync(folder, { recursive: true });
});

/** Each user has a webhook of their own origin where `urls` names one. */
function config(facts: {
  users?: readonly string[];
  urls?: Record<string, string>;
  channels?: string[];
  limits?: object;
}): Config {
  const { users = ["ann"], urls = {}, channels = ["webhook"], limits = {} } = facts;
  const value = {
    users: users.map((id) => ({
      id,
      email: `${id}@example.com`,
      webhook: { url: urls[id] ?? "https://hooks.example.com/", secret: SECRET },
      roles: ["all"],
    })),
    rules: [{ name: "everything", to: { roles: ["all"] }, channels, template: "plain" }],
    templates: {
      plain: { webhook: { body: '{"n":{{ data.n | json }}}' }, email: { subject: "s", text: "{{ data.n }}" } },
    },
    limits: { perUser: { count: 1_000_000, perMs: 1_000 }, ...limits },
    intake: { capacity: 2_000 },
  };
  return parseConfig(value, [...channelForms.values()]);
}

type Stage = Partial<DispatcherOptions> & { readonly config: Config };

async function start(stage: Stage): Promise<Dispatcher> {
  const { config: given, clock, ...rest } = stage;
  const channels = rest.channels ?? [webhookChannel({ allowPrivateNetworks: true, clock })];
  const dispatcher = await Dispatcher.open({
    file,
    log: pino({ level: "silent" }),
    ...rest,
    config: given,
    clock,
    channels,
  });
  open.push(() => (clock instanceof VirtualClock ? passing(clock, dispatcher.stop()) : dispatcher.stop()));
  dispatcher.start();
  return dispatcher;
}

/** A stop waits for what never ends, on the dispatcher's clock. */
async function passing<T>(clock: VirtualClock, stopped: Promise<T>): Promise<T> {
  await clock.advance(20_000);
  return stopped;
}

const events = (count: number, from = 0): Event[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `${from + i}`,
    source: "test",
    type: "thing",
    data: { n: from + i },
  }));

type Answer = (request: IncomingMessage, response: ServerResponse, nth: number) => void;

/** A real endpoint on loopback, and the webhook-ids it was asked with. */
async function endpoint(answer: Answer): Promise<{ readonly url: string; readonly ids: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(String(request.headers["webhook-id"]));
    request.resume().on("end", () => answer(request, response, asked.length));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.unshift(() => new Promise<void>((resolve) => (server.close(() => resolve()), server.closeAllConnections())));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ids: asked };
}

const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    void response.writeHead(code, headers).end();

/** Answers as told, and says when it was asked. */
function sink(clock: Clock, answer: SinkChannelOptions["answer"], name = "webhook") {
  const askedAt: number[] = [];
  const channel = sinkChannel(name, {
    answer: (message) => {
      askedAt.push(clock.wallNow());
      return answer?.(message) ?? { answer: "taken" };
    },
  });
  return { channel, askedAt };
}

const refuse = (retryAfterMs?: number): never => {
  throw new SendError("500 oh", { kind: "transient", providerFault: true, retryAfterMs });
};

/** The ids of all notifications, oldest first. */
function stored(): string[] {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = db.prepare("SELECT id FROM notifications ORDER BY n").all() as unknown as { readonly id: string }[];
  db.close();
  return rows.map(({ id }) => id);
}

function entries(dispatcher: Dispatcher, id: string): readonly HistoryEntry[] {
  const history = dispatcher.reader.history(id);
  if (history === undefined) throw new Error(`there is no ${id}`);
  return history.entries;
}

const kinds = (dispatcher: Dispatcher, id: string): string =>
  entries(dispatcher, id)
    .map(({ kind }) => kind)
    .join(" ");

describe("delivery", () => {
  it("takes an event, renders it for everybody a rule reaches, and ends with everything delivered", async () => {
    const hook = await endpoint((_, response) => void response.writeHead(204).end());
    const users = ["ann", "bob"];
    const mail = sink(systemClock, undefined, "email");
    const dispatcher = await start({
      config: config({ users, urls: { ann: hook.url, bob: hook.url }, channels: ["email", "webhook"] }),
      channels: [webhookChannel({ allowPrivateNetworks: true }), mail.channel],
    });
    await dispatcher.journal.accept(events(3));
    expect(await dispatcher.journal.accept(events(3))).toEqual(events(3).map(() => ({ outcome: "duplicate" })));
    await dispatcher.whenIdle(0);
    expect(hook.ids).toHaveLength(6);
    expect(new Set(hook.ids).size).toBe(6);
    expect(mail.askedAt).toHaveLength(6);
    const { counts } = dispatcher;
    expect(counts).toMatchObject({ events: 3, duplicates: 3, notifications: 12, retried: 0, refused: 0 });
    expect(counts.count("delivered", "webhook")).toBe(6);
    const [id = ""] = hook.ids;
    expect(kinds(dispatcher, id)).toBe("accepted matched attempt delivered");
    expect(entries(dispatcher, id).at(-1)).toMatchObject({ attempt: 1, detail: expect.stringContaining("204") });
  });

  it("has no room for more than it may hold, and takes the rest when some of it is expanded", async () => {
    const clock = new VirtualClock();
    const given = config({});
    const full = { ...given, intake: { ...given.intake, capacity: 3 } };
    const provider = sink(clock, undefined);
    const dispatcher = await start({ config: full, clock, channels: [provider.channel] });
    const answers = await Promise.allSettled([
      dispatcher.journal.accept(events(4)),
      dispatcher.journal.accept(events(3)),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual(["rejected", "fulfilled"]);
    expect(answers[0]).toMatchObject({ reason: { code: "INTAKE_FULL", limit: 3, retryAfterMs: 1_000 } });
    await clock.advance(1_000);
    expect(provider.askedAt).toHaveLength(3);
    await dispatcher.journal.accept(events(3, 3));
    expect(dispatcher.counts).toMatchObject({ events: 6, duplicates: 0 });
  });

  it("gives up what can't be rendered, without asking the provider", async () => {
    const clock = new VirtualClock();
    const provider = sink(clock, undefined);
    const given = config({});
    const templates = { plain: { webhook: { body: '{"n":{{ data.n }}}' } } };
    const dispatcher = await start({ config: { ...given, templates }, clock, channels: [provider.channel] });
    await dispatcher.journal.accept([{ id: "1", source: "test", type: "thing", data: { n: "no number" } }]);
    await clock.advance(1);
    expect(provider.askedAt).toEqual([]);
    const [letter] = dispatcher.reader.dead({}, 1);
    expect(letter?.reason).toMatch(/template plain, webhook\.body: the result is not JSON/);
    expect(kinds(dispatcher, letter?.id ?? "")).toBe("accepted matched attempt failed dead");
  });

  it("drops what is for somebody who has left the configuration", async () => {
    const clock = new VirtualClock();
    const provider = sink(clock, undefined);
    const limits = { perUser: { count: 1, perMs: 60_000 } };
    const one = await start({ config: config({ limits }), clock, channels: [provider.channel] });
    await one.journal.accept(events(2));
    await clock.advance(1);
    await one.stop();
    const two = await start({ config: config({ users: ["bob"], limits }), clock, channels: [provider.channel] });
    await clock.advance(60_000);
    expect(provider.askedAt).toHaveLength(1);
    expect([...two.counts.dropReasons()]).toEqual([["the user has no address for webhook any more", 1]]);
  });

  it("C190: two dispatchers on one file send each notification once", async () => {
    const hook = await endpoint((_, response) => void setTimeout(() => response.writeHead(204).end(), 50));
    const given = config({ urls: { ann: hook.url }, limits: { concurrency: { webhook: 4 } } });
    const [first, second] = await Promise.all([start({ config: given }), start({ config: given })]);
    await Promise.all([first.journal.accept(events(100)), second.journal.accept(events(100, 100))]);
    await Promise.all([first.whenIdle(0), second.whenIdle(0)]);
    expect(hook.ids).toHaveLength(200);
    expect(new Set(hook.ids).size).toBe(200);
    expect(first.counts.notifications + second.counts.notifications).toBe(200);
    expect(first.counts.refused + second.counts.refused).toBe(0);
    for (const { counts } of [first, second]) expect(counts.count("delivered")).toBeGreaterThan(0);
  });

  it("C192: a receiver that never answers holds up nobody else, and its own end by their time limit", async () => {
    const hung = await endpoint(() => {});
    const quick = await endpoint(status(204));
    const limits = { concurrency: { webhook: 20 }, attemptTimeoutMs: 3_000, retries: 0, breaker: { failures: 100 } };
    const given = config({ users: ["ann", "bob"], urls: { ann: hung.url, bob: quick.url }, limits });
    const dispatcher = await start({ config: given });
    await dispatcher.journal.accept(events(10));
    await dispatcher.whenIdle(0);
    expect(quick.ids).toHaveLength(10);
    expect(dispatcher.counts.count("delivered")).toBe(10);
    expect(dispatcher.counts.count("dead")).toBe(10);
    for (const id of hung.ids) expect(entries(dispatcher, id).at(-2)?.detail).toBe("timed out after 3000 ms");
  });

  it("C192: a channel that hangs takes nothing from another", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const hung = sink(clock, () => new Promise(() => {}), "email");
    const quick = sink(clock, undefined);
    const given = config({ channels: ["email", "webhook"], limits: { concurrency: { email: 4, webhook: 4 } } });
    const dispatcher = await start({ config: given, clock, channels: [hung.channel, quick.channel] });
    await dispatcher.journal.accept(events(50));
    await clock.advance(1_000);
    expect(hung.askedAt).toHaveLength(4);
    expect(quick.askedAt).toHaveLength(50);
    expect(clock.wallNow()).toBe(1_001_000);
  });
});

describe("retries", () => {
  it("C191: a failed delivery is sent again at the time its history names, until it is taken", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    let left = 2;
    const provider = sink(clock, () => (left-- > 0 ? refuse() : { answer: "taken" }));
    const dispatcher = await start({
      config: config({ limits: { retries: 4, breaker: { failures: 100 } } }),
      clock,
      channels: [provider.channel],
      random: () => 0.999_999,
    });
    await dispatcher.journal.accept(events(1));
    await clock.advance(60_000);
    expect(provider.askedAt).toEqual([1_000_000, 1_001_000, 1_003_000]);
    const [id = ""] = stored();
    expect(kinds(dispatcher, id)).toBe("accepted matched attempt failed attempt failed attempt delivered");
    expect(entries(dispatcher, id).flatMap(({ until }) => until ?? [])).toEqual([1_001_000, 1_003_000]);
    expect(dispatcher.counts).toMatchObject({ retried: 2, notifications: 1 });
  });

  it("C191: one that always fails is sent once and again as often as retries are set, and then is dead", async () => {
    const clock = new VirtualClock();
    const provider = sink(clock, () => refuse());
    const dispatcher = await start({
      config: config({ limits: { retries: 4, breaker: { failures: 100 } } }),
      clock,
      channels: [provider.channel],
    });
    await dispatcher.journal.accept(events(1));
    await clock.advance(120_000);
    expect(provider.askedAt).toHaveLength(5);
    expect(dispatcher.counts.count("dead")).toBe(1);
    expect(dispatcher.reader.dead({}, 10)).toMatchObject([{ reason: "failed 5 times, at last with: 500 oh" }]);
  });

  it.each([400, 410])("C200: a refusal for good, HTTP %i, is sent once and then is dead", async (code) => {
    const hook = await endpoint(status(code));
    const dispatcher = await start({ config: config({ urls: { ann: hook.url } }) });
    await dispatcher.journal.accept(events(1));
    await dispatcher.whenIdle(0);
    expect(hook.ids).toHaveLength(1);
    expect(kinds(dispatcher, hook.ids[0] ?? "")).toBe("accepted matched attempt failed dead");
    expect(dispatcher.counts.count("dead")).toBe(1);
  });

  it("C200: a provider that asks for 30 s is given them", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    let isFirst = true;
    const provider = sink(clock, () => {
      if (!isFirst) return { answer: "taken" };
      isFirst = false;
      return refuse(30_000);
    });
    const dispatcher = await start({ config: config({}), clock, channels: [provider.channel] });
    await dispatcher.journal.accept(events(1));
    await clock.advance(29_999);
    expect(provider.askedAt).toHaveLength(1);
    await clock.advance(1);
    expect(provider.askedAt).toEqual([1_000_000, 1_030_000]);
    expect(dispatcher.counts.count("delivered")).toBe(1);
  });

  it("does not wait for a provider that asks for more time than there is", async () => {
    const clock = new VirtualClock();
    const provider = sink(clock, () => refuse(900_000));
    const dispatcher = await start({ config: config({}), clock, channels: [provider.channel] });
    await dispatcher.journal.accept(events(1));
    await clock.advance(1);
    expect(dispatcher.counts.count("dead")).toBe(1);
    expect(dispatcher.reader.dead({}, 1)[0]?.reason).toMatch(/deadline/);
  });

  it("ends an attempt at its time limit, which speaks against the provider", async () => {
    const clock = new VirtualClock();
    const provider = sink(clock, () => new Promise(() => {}));
    const limits = { retries: 0, attemptTimeoutMs: 5_000, breaker: { failures: 1 } };
    const dispatcher = await start({ config: config({ limits }), clock, channels: [provider.channel] });
    await dispatcher.journal.accept(events(1));
    await clock.advance(4_999);
    expect(dispatcher.counts.count("dead")).toBe(0);
    await clock.advance(1);
    expect(dispatcher.counts.count("dead")).toBe(1);
    await dispatcher.journal.accept(events(1, 1));
    await clock.advance(1);
    expect(provider.askedAt).toHaveLength(1);
    expect(dispatcher.counts.count("deferred")).toBe(1);
  });
});

describe("breakers", () => {
  it("C199: a dead provider is asked at the probe rate, others go on, and a probe brings it back", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const cooldownMs = 30_000;
    let isDown = true;
    const dead = sink(clock, () => (isDown ? refuse() : { answer: "taken" }), "email");
    const healthy = sink(clock, undefined);
    const limits = { retries: 100, deadlineMs: 1e9, breaker: { failures: 5, cooldownMs }, concurrency: { email: 20 } };
    const dispatcher = await start({
      config: config({ channels: ["email", "webhook"], limits }),
      clock,
      channels: [dead.channel, healthy.channel],
    });
    await dispatcher.journal.accept(events(100));
    await clock.advance(10_000);
    expect(healthy.askedAt).toHaveLength(100);
    const underWay = dead.askedAt.length; // when the breaker opened
    expect(underWay).toBeLessThanOrEqual(20);
    await clock.advance(6 * cooldownMs);
    const probes = dead.askedAt.slice(underWay);
    expect(probes.length).toBeGreaterThanOrEqual(4);
    expect(probes.length).toBeLessThanOrEqual(6);
    const gaps = probes.slice(1).map((at, i) => at - (probes[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(cooldownMs);
    isDown = false;
    await clock.advance(3 * cooldownMs);
    expect(dispatcher.counts.count("delivered", "email")).toBe(100);
    expect(dispatcher.counts.count("deferred")).toBe(0);
  });

  it("is one for each origin of webhooks", async () => {
    const failing = await endpoint(status(503));
    const healthy = await endpoint(status(204));
    const limits = { retries: 0, breaker: { failures: 1 }, concurrency: { webhook: 1 } };
    const urls = { ann: failing.url, bob: healthy.url };
    const dispatcher = await start({ config: config({ users: ["ann", "bob"], urls, limits }) });
    await dispatcher.journal.accept(events(5));
    await dispatcher.whenIdle(0);
    expect(failing.ids).toHaveLength(1);
    expect(healthy.ids).toHaveLength(5);
    expect(dispatcher.counts.count("deferred")).toBe(4);
    expect(dispatcher.health()).toMatchObject({ ok: true, waiting: 0, breakers: { webhook: { keys: 2, tripped: 1 } } });
  });

  it("is waited for by those who have patience", async () => {
    const clock = new VirtualClock();
    let isDown = true;
    const provider = sink(clock, () => (isDown ? refuse() : { answer: "taken" }));
    const limits = { retries: 0, breaker: { failures: 1, cooldownMs: 30_000 }, concurrency: { webhook: 1 } };
    const dispatcher = await start({
      config: config({ limits }),
      clock,
      channels: [provider.channel],
      random: () => 0,
    });
    await dispatcher.journal.accept(events(2));
    const left: number[] = [];
    const leave = (): unknown => left.push(clock.now());
    void dispatcher.whenIdle(0).then(leave);
    void dispatcher.whenIdle(10_000).then(leave);
    void dispatcher.whenIdle(60_000).then(leave);
    await clock.advance(20_000);
    expect(left[0]).toBeLessThan(1_000);
    expect(left[1]).toBeGreaterThanOrEqual(10_000);
    expect(left).toHaveLength(2);
    isDown = false;
    await clock.advance(20_000);
    expect(left).toHaveLength(3);
    expect(dispatcher.counts.count("delivered")).toBe(1);
  });

  it("takes no notice of what is wrong with a message", async () => {
    const clock = new VirtualClock();
    const permanent = sink(clock, () => {
      throw new SendError("410 gone", { kind: "permanent", providerFault: false });
    });
    const limits = { breaker: { failures: 1 }, concurrency: { webhook: 1 } };
    const dispatcher = await start({ config: config({ limits }), clock, channels: [permanent.channel] });
    await dispatcher.journal.accept(events(20));
    await clock.advance(1);
    expect(permanent.askedAt).toHaveLength(20);
    expect(dispatcher.counts.count("dead")).toBe(20);
  });

  it("turns away without an attempt, without a token of the user's limit, and says why", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    let isDown = true;
    const provider = sink(clock, () => (isDown ? refuse() : { answer: "taken" }));
    const limits = { retries: 0, perUser: { count: 2, perMs: 1e9 }, breaker: { failures: 1, cooldownMs: 30_000 } };
    const dispatcher = await start({
      config: config({ limits }),
      clock,
      channels: [provider.channel],
      random: () => 0,
    });
    await dispatcher.journal.accept(events(1));
    await clock.advance(1);
    await dispatcher.journal.accept(events(1, 1));
    await clock.advance(1);
    isDown = false;
    const [, id = ""] = stored();
    expect(entries(dispatcher, id).at(-1)).toMatchObject({ kind: "deferred", detail: expect.stringContaining("sink") });
    await clock.advance(30_000);
    expect(kinds(dispatcher, id)).toBe("accepted matched deferred attempt delivered");
    expect(provider.askedAt).toHaveLength(2);
  });
});

describe("a restart", () => {
  it("sends only what is left, deferred ones at their time, without a second burst", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const limits = { perUser: { count: 5, perMs: 60_000 } };
    const first = sink(clock, undefined);
    const one = await start({ config: config({ limits }), clock, channels: [first.channel] });
    await one.journal.accept(events(7));
    await clock.advance(100);
    expect(one.counts).toMatchObject({ notifications: 7 });
    expect(one.counts.count("deferred")).toBe(2);
    await one.stop();
    const second = sink(clock, undefined);
    const two = await start({ config: config({ limits }), clock, channels: [second.channel] });
    await two.journal.accept(events(7));
    await clock.advance(100);
    expect(second.askedAt).toEqual([]);
    await clock.advance(12_000);
    expect(second.askedAt).toEqual([1_012_000]);
    expect(two.counts).toMatchObject({ events: 0, duplicates: 7, notifications: 1 });
    await clock.advance(12_000);
    expect(second.askedAt).toEqual([1_012_000, 1_024_000]);
  });
});

describe("stop", () => {
  it("lets what is being sent end, claims nothing more, and leaves the rest for the next start", async () => {
    const clock = new VirtualClock();
    const answers: (() => void)[] = [];
    const provider = sink(clock, () => new Promise((resolve) => answers.push(() => resolve({ answer: "taken" }))));
    const given = config({ limits: { concurrency: { webhook: 3 } } });
    const dispatcher = await start({ config: given, clock, channels: [provider.channel] });
    await dispatcher.journal.accept(events(10));
    await clock.advance(1);
    expect(answers).toHaveLength(3);
    const stopped = dispatcher.stop();
    await clock.advance(1);
    for (const answer of answers) answer();
    await clock.advance(20_000);
    expect(await stopped).toEqual({ finished: 3, released: 0, lost: 0 });
    const message = { id: "x", user: { id: "ann", roles: [], repositories: [] }, address: "", content: {} };
    const late = provider.channel.send(message, { signal: new AbortController().signal });
    await expect(late).rejects.toThrow("closed");
    expect(provider.askedAt).toHaveLength(3);
    const rest = sink(clock, undefined);
    const next = await start({ config: given, clock, channels: [rest.channel] });
    await clock.advance(1_000);
    expect(rest.askedAt).toHaveLength(7);
    expect(next.counts.count("delivered")).toBe(7);
  });

  it("breaks off what doesn't end in time and gives it back, its outcome not known", async () => {
    const clock = new VirtualClock();
    const provider = sink(clock, () => new Promise(() => {}));
    const given = config({ limits: { attemptTimeoutMs: 60_000 } });
    const dispatcher = await start({ config: given, clock, channels: [provider.channel], graceMs: 1_000 });
    await dispatcher.journal.accept(events(2));
    await clock.advance(1);
    const stopped = dispatcher.stop();
    await clock.advance(20_000);
    expect(await stopped).toEqual({ finished: 0, released: 2, lost: 0 });
    const rest = sink(clock, undefined);
    const next = await start({ config: given, clock, channels: [rest.channel] });
    await clock.advance(1); // no lease is waited for
    expect(rest.askedAt).toHaveLength(2);
    const [id = ""] = stored();
    expect(kinds(next, id)).toBe("accepted matched attempt unknown attempt delivered");
  });
});
