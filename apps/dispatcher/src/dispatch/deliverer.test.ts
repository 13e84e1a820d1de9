import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SendError } from "../channels/channel.ts";
import { entriesOf, kindsOf, provider, refuse, someEvents, Stage, stageConfig, status } from "./stage.ts";

let stage: Stage;

beforeEach(() => {
  stage = new Stage();
});

afterEach(() => stage.close());

describe("retries", () => {
  it("C191: a failed delivery is sent again at the time its history names, until it is taken", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    let left = 2;
    const asked = provider(clock, () => (left-- > 0 ? refuse() : { answer: "taken" }));
    const dispatcher = await stage.start({
      config: stageConfig({ limits: { retries: 4, breaker: { failures: 100 } } }),
      clock,
      channels: [asked.channel],
      random: () => 0.999_999,
    });
    await dispatcher.journal.accept(someEvents(1));
    await clock.advance(60_000);
    expect(asked.askedAt).toEqual([1_000_000, 1_001_000, 1_003_000]);
    const [id = ""] = stage.ids();
    expect(kindsOf(dispatcher, id)).toBe("accepted matched attempt failed attempt failed attempt delivered");
    expect(entriesOf(dispatcher, id).flatMap(({ until }) => until ?? [])).toEqual([1_001_000, 1_003_000]);
    expect(dispatcher.counts).toMatchObject({ retried: 2, notifications: 1 });
  });

  it("C191: one that always fails is sent once and again as often as retries are set, and then is dead", async () => {
    const clock = new VirtualClock();
    const asked = provider(clock, () => refuse());
    const dispatcher = await stage.start({
      config: stageConfig({ limits: { retries: 4, breaker: { failures: 100 } } }),
      clock,
      channels: [asked.channel],
    });
    await dispatcher.journal.accept(someEvents(1));
    await clock.advance(120_000);
    expect(asked.askedAt).toHaveLength(5);
    expect(dispatcher.counts.count("dead")).toBe(1);
    expect(dispatcher.reader.dead({}, 10)).toMatchObject([{ reason: "failed 5 times, at last with: 500 oh" }]);
  });

  it("puts retries off that exceed the budget of their channel, without an attempt, and says why", async () => {
    const clock = new VirtualClock();
    let isDown = true;
    const asked = provider(clock, () => (isDown ? refuse() : { answer: "taken" }));
    const retryBudget = { ratio: 0.1, minPerSecond: 1 };
    const limits = { retries: 3, retryBudget, breaker: { failures: 1_000 }, perUser: { count: 1_000 } };
    const dispatcher = await stage.start({ config: stageConfig({ limits }), clock, channels: [asked.channel] });
    await dispatcher.journal.accept(someEvents(100));
    await clock.advance(9_000);
    expect(asked.askedAt).toHaveLength(110);
    expect(dispatcher.counts.count("deferred")).toBeGreaterThan(80);
    const why = (each: string): string | undefined => entriesOf(dispatcher, each).at(-1)?.detail;
    const id = stage.ids().find((each) => why(each) === "too much of webhook is being tried again") ?? "";
    expect(kindsOf(dispatcher, id)).toBe("accepted matched attempt failed deferred");
    isDown = false;
    await clock.advance(14 * 60_000);
    expect(dispatcher.counts.count("delivered")).toBe(100);
  });

  it.each([400, 410])("C200: a refusal for good, HTTP %i, is sent once and then is dead", async (code) => {
    const hook = await stage.endpoint(status(code));
    const dispatcher = await stage.start({ config: stageConfig({ urls: { ann: hook.url } }) });
    await dispatcher.journal.accept(someEvents(1));
    await dispatcher.whenIdle(0);
    expect(hook.ids).toHaveLength(1);
    expect(kindsOf(dispatcher, hook.ids[0] ?? "")).toBe("accepted matched attempt failed dead");
    expect(dispatcher.counts.count("dead")).toBe(1);
  });

  it("C200: a provider that asks for 30 s is given them", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    let isFirst = true;
    const asked = provider(clock, () => {
      if (!isFirst) return { answer: "taken" };
      isFirst = false;
      return refuse(30_000);
    });
    const dispatcher = await stage.start({ config: stageConfig({}), clock, channels: [asked.channel] });
    await dispatcher.journal.accept(someEvents(1));
    await clock.advance(29_999);
    expect(asked.askedAt).toHaveLength(1);
    await clock.advance(1);
    expect(asked.askedAt).toEqual([1_000_000, 1_030_000]);
    expect(dispatcher.counts.count("delivered")).toBe(1);
  });

  it("does not wait for a provider that asks for more time than there is", async () => {
    const clock = new VirtualClock();
    const asked = provider(clock, () => refuse(900_000));
    const dispatcher = await stage.start({ config: stageConfig({}), clock, channels: [asked.channel] });
    await dispatcher.journal.accept(someEvents(1));
    await clock.advance(1);
    expect(dispatcher.counts.count("dead")).toBe(1);
    expect(dispatcher.reader.dead({}, 1)[0]?.reason).toMatch(/deadline/);
  });

  it("ends an attempt at its time limit, which speaks against the provider", async () => {
    const clock = new VirtualClock();
    const asked = provider(clock, () => new Promise(() => {}));
    const limits = { retries: 0, attemptTimeoutMs: 5_000, breaker: { failures: 1 } };
    const dispatcher = await stage.start({ config: stageConfig({ limits }), clock, channels: [asked.channel] });
    await dispatcher.journal.accept(someEvents(1));
    await clock.advance(4_999);
    expect(dispatcher.counts.count("dead")).toBe(0);
    await clock.advance(1);
    expect(dispatcher.counts.count("dead")).toBe(1);
    await dispatcher.journal.accept(someEvents(1, 1));
    await clock.advance(1);
    expect(asked.askedAt).toHaveLength(1);
    expect(dispatcher.counts.count("deferred")).toBe(1);
  });
});

describe("breakers", () => {
  it("C199: a dead provider is asked at the probe rate, others go on, and a probe brings it back", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const cooldownMs = 30_000;
    let isDown = true;
    const dead = provider(clock, () => (isDown ? refuse() : { answer: "taken" }), "email");
    const healthy = provider(clock, undefined);
    const limits = { retries: 100, deadlineMs: 1e9, breaker: { failures: 5, cooldownMs }, concurrency: { email: 20 } };
    const dispatcher = await stage.start({
      config: stageConfig({ channels: ["email", "webhook"], limits }),
      clock,
      channels: [dead.channel, healthy.channel],
    });
    await dispatcher.journal.accept(someEvents(100));
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
    const failing = await stage.endpoint(status(503));
    const healthy = await stage.endpoint(status(204));
    const limits = { retries: 0, breaker: { failures: 1 }, concurrency: { webhook: 1 } };
    const urls = { ann: failing.url, bob: healthy.url };
    const dispatcher = await stage.start({ config: stageConfig({ users: ["ann", "bob"], urls, limits }) });
    await dispatcher.journal.accept(someEvents(5));
    await dispatcher.whenIdle(0);
    expect(failing.ids).toHaveLength(1);
    expect(healthy.ids).toHaveLength(5);
    expect(dispatcher.counts.count("deferred")).toBe(4);
    expect(dispatcher.health()).toMatchObject({ ok: true, waiting: 0, breakers: { webhook: { keys: 2, tripped: 1 } } });
  });

  it("is waited for by those who have patience", async () => {
    const clock = new VirtualClock();
    let isDown = true;
    const asked = provider(clock, () => (isDown ? refuse() : { answer: "taken" }));
    const limits = { retries: 0, breaker: { failures: 1, cooldownMs: 30_000 }, concurrency: { webhook: 1 } };
    const dispatcher = await stage.start({
      config: stageConfig({ limits }),
      clock,
      channels: [asked.channel],
      random: () => 0,
    });
    await dispatcher.journal.accept(someEvents(2));
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
    const permanent = provider(clock, () => {
      throw new SendError("410 gone", { kind: "permanent", providerFault: false });
    });
    const limits = { breaker: { failures: 1 }, concurrency: { webhook: 1 } };
    const dispatcher = await stage.start({ config: stageConfig({ limits }), clock, channels: [permanent.channel] });
    await dispatcher.journal.accept(someEvents(20));
    await clock.advance(1);
    expect(permanent.askedAt).toHaveLength(20);
    expect(dispatcher.counts.count("dead")).toBe(20);
  });

  it("turns away without an attempt, without a token of the user's limit, and says why", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    let isDown = true;
    const asked = provider(clock, () => (isDown ? refuse() : { answer: "taken" }));
    const limits = { retries: 0, perUser: { count: 2, perMs: 1e9 }, breaker: { failures: 1, cooldownMs: 30_000 } };
    const dispatcher = await stage.start({
      config: stageConfig({ limits }),
      clock,
      channels: [asked.channel],
      random: () => 0,
    });
    await dispatcher.journal.accept(someEvents(1));
    await clock.advance(1);
    await dispatcher.journal.accept(someEvents(1, 1));
    await clock.advance(1);
    isDown = false;
    const [, id = ""] = stage.ids();
    expect(entriesOf(dispatcher, id).at(-1)).toMatchObject({
      kind: "deferred",
      detail: expect.stringContaining("sink"),
    });
    await clock.advance(30_000);
    expect(kindsOf(dispatcher, id)).toBe("accepted matched deferred attempt delivered");
    expect(asked.askedAt).toHaveLength(2);
  });
});
