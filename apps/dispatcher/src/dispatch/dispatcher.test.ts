import { renameSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "sluice";
import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { webhookChannel } from "../channels/webhook.ts";
import { entriesOf, kindsOf, provider, someEvents, Stage, stageConfig, status } from "./stage.ts";

/** For what the network does, on however slow a machine. */
const WAIT = { timeout: 25_000, interval: 5 };

let stage: Stage;

beforeEach(() => {
  stage = new Stage();
});

afterEach(() => stage.close());

describe("delivery", () => {
  it("takes an event, renders it for everybody a rule reaches, and ends with everything delivered", async () => {
    const hook = await stage.endpoint((_, response) => void response.writeHead(204).end());
    const users = ["ann", "bob"];
    const mail = provider(systemClock, undefined, "email");
    const dispatcher = await stage.start({
      config: stageConfig({ users, urls: { ann: hook.url, bob: hook.url }, channels: ["email", "webhook"] }),
      channels: [webhookChannel({ allowPrivateNetworks: true }), mail.channel],
    });
    await dispatcher.journal.accept(someEvents(3));
    expect(await dispatcher.journal.accept(someEvents(3))).toEqual(someEvents(3).map(() => ({ outcome: "duplicate" })));
    await dispatcher.whenIdle(0);
    expect(hook.ids).toHaveLength(6);
    expect(new Set(hook.ids).size).toBe(6);
    expect(mail.askedAt).toHaveLength(6);
    const { counts } = dispatcher;
    expect(counts).toMatchObject({ events: 3, duplicates: 3, notifications: 12, retried: 0, refused: 0 });
    expect(counts.count("delivered", "webhook")).toBe(6);
    const [id = ""] = hook.ids;
    expect(kindsOf(dispatcher, id)).toBe("accepted matched attempt delivered");
    expect(entriesOf(dispatcher, id).at(-1)).toMatchObject({ attempt: 1, detail: expect.stringContaining("204") });
  });

  it("has no room for more than it may hold, and takes the rest when some of it is expanded", async () => {
    const clock = new VirtualClock();
    const given = stageConfig({});
    const full = { ...given, intake: { ...given.intake, capacity: 3 } };
    const asked = provider(clock, undefined);
    const dispatcher = await stage.start({ config: full, clock, channels: [asked.channel] });
    const answers = await Promise.allSettled([
      dispatcher.journal.accept(someEvents(4)),
      dispatcher.journal.accept(someEvents(3)),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual(["rejected", "fulfilled"]);
    expect(answers[0]).toMatchObject({ reason: { code: "INTAKE_FULL", limit: 3, retryAfterMs: 1_000 } });
    await clock.advance(1_000);
    expect(asked.askedAt).toHaveLength(3);
    await dispatcher.journal.accept(someEvents(3, 3));
    expect(dispatcher.counts).toMatchObject({ events: 6, duplicates: 0 });
  });

  it("accepts nothing into a file that was moved away, and says that it is not well", async () => {
    const dispatcher = await stage.start({ config: stageConfig({}), channels: [provider(systemClock).channel] });
    renameSync(stage.file, `${stage.file}.away`);
    await expect(dispatcher.journal.accept(someEvents(1))).rejects.toThrow("removed");
    expect(dispatcher.health()).toMatchObject({ ok: false, trouble: expect.stringContaining("removed") });
  });

  it("says that it is not well while nothing can be written, and why", async () => {
    const dispatcher = await stage.start({ config: stageConfig({}), channels: [provider(systemClock).channel] });
    const db = new DatabaseSync(stage.file);
    db.exec("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no room'); END");
    await expect(dispatcher.journal.accept(someEvents(1))).rejects.toThrow("no room");
    expect(dispatcher.health()).toMatchObject({ ok: false, trouble: "no room" });
    db.exec("DROP TRIGGER full");
    db.close();
    await dispatcher.journal.accept(someEvents(1));
    expect(dispatcher.health()).toMatchObject({ ok: true });
  });

  it("gives up what can't be rendered, without asking the provider", async () => {
    const clock = new VirtualClock();
    const asked = provider(clock, undefined);
    const given = stageConfig({});
    const templates = { plain: { webhook: { body: '{"n":{{ data.n }}}' } } };
    const dispatcher = await stage.start({ config: { ...given, templates }, clock, channels: [asked.channel] });
    await dispatcher.journal.accept([{ id: "1", source: "test", type: "thing", data: { n: "no number" } }]);
    await clock.advance(1);
    expect(asked.askedAt).toEqual([]);
    const [letter] = dispatcher.reader.dead({}, 1);
    expect(letter?.reason).toMatch(/template plain, webhook\.body: the result is not JSON/);
    expect(kindsOf(dispatcher, letter?.id ?? "")).toBe("accepted matched attempt failed dead");
  });

  it("drops what is for somebody who has left the configuration", async () => {
    const clock = new VirtualClock();
    const asked = provider(clock, undefined);
    const limits = { perUser: { count: 1, perMs: 60_000 } };
    const one = await stage.start({ config: stageConfig({ limits }), clock, channels: [asked.channel] });
    await one.journal.accept(someEvents(2));
    await clock.advance(1);
    await one.stop();
    const two = await stage.start({
      config: stageConfig({ users: ["bob"], limits }),
      clock,
      channels: [asked.channel],
    });
    await clock.advance(60_000);
    expect(asked.askedAt).toHaveLength(1);
    expect([...two.counts.dropReasons()]).toEqual([["the user has no address for webhook any more", 1]]);
  });

  it("C190: two dispatchers on one file send each notification once", async () => {
    const hook = await stage.endpoint((_, response) => void setTimeout(() => response.writeHead(204).end(), 50));
    const given = stageConfig({ urls: { ann: hook.url }, limits: { concurrency: { webhook: 4 } } });
    const [first, second] = await Promise.all([stage.start({ config: given }), stage.start({ config: given })]);
    await Promise.all([first.journal.accept(someEvents(100)), second.journal.accept(someEvents(100, 100))]);
    await Promise.all([first.whenIdle(0), second.whenIdle(0)]);
    expect(hook.ids).toHaveLength(200);
    expect(new Set(hook.ids).size).toBe(200);
    expect(first.counts.notifications + second.counts.notifications).toBe(200);
    expect(first.counts.refused + second.counts.refused).toBe(0);
    for (const { counts } of [first, second]) expect(counts.count("delivered")).toBeGreaterThan(0);
  });

  it("C192: a receiver that never answers holds up nobody else, and its own end by their time limit", async () => {
    const hung = await stage.endpoint(() => {});
    const quick = await stage.endpoint(status(204));
    const limits = { concurrency: { webhook: 20 }, attemptTimeoutMs: 3_000, retries: 0, breaker: { failures: 100 } };
    const given = stageConfig({ users: ["ann", "bob"], urls: { ann: hung.url, bob: quick.url }, limits });
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const dispatcher = await stage.start({ config: given, clock });
    await dispatcher.journal.accept(someEvents(10));
    await clock.advance(1);
    await vi.waitUntil(() => hung.ids.length === 10 && dispatcher.counts.count("delivered") === 10, WAIT);
    expect(quick.ids).toHaveLength(10);
    expect(dispatcher.counts.notifications).toBe(10);
    await clock.advance(3_000);
    await vi.waitUntil(() => dispatcher.counts.notifications === 20, WAIT);
    expect(dispatcher.counts.count("dead")).toBe(10);
    for (const id of hung.ids) expect(entriesOf(dispatcher, id).at(-2)?.detail).toBe("timed out after 3000 ms");
  });

  it("C192: a channel that hangs takes nothing from another", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const hung = provider(clock, () => new Promise(() => {}), "email");
    const quick = provider(clock, undefined);
    const given = stageConfig({ channels: ["email", "webhook"], limits: { concurrency: { email: 4, webhook: 4 } } });
    const dispatcher = await stage.start({ config: given, clock, channels: [hung.channel, quick.channel] });
    await dispatcher.journal.accept(someEvents(50));
    await clock.advance(1_000);
    expect(hung.askedAt).toHaveLength(4);
    expect(quick.askedAt).toHaveLength(50);
    expect(clock.wallNow()).toBe(1_001_000);
  });
});

describe("a restart", () => {
  it("sends only what is left, deferred ones at their time, without a second burst", async () => {
    const clock = new VirtualClock({ wallStartAt: 1_000_000 });
    const limits = { perUser: { count: 5, perMs: 60_000 } };
    const first = provider(clock, undefined);
    const one = await stage.start({ config: stageConfig({ limits }), clock, channels: [first.channel] });
    await one.journal.accept(someEvents(7));
    await clock.advance(100);
    expect(one.counts).toMatchObject({ notifications: 7 });
    expect(one.counts.count("deferred")).toBe(2);
    await one.stop();
    const second = provider(clock, undefined);
    const two = await stage.start({ config: stageConfig({ limits }), clock, channels: [second.channel] });
    await two.journal.accept(someEvents(7));
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
    const asked = provider(clock, () => new Promise((resolve) => answers.push(() => resolve({ answer: "taken" }))));
    const given = stageConfig({ limits: { concurrency: { webhook: 3 } } });
    const dispatcher = await stage.start({ config: given, clock, channels: [asked.channel] });
    await dispatcher.journal.accept(someEvents(10));
    await clock.advance(1);
    expect(answers).toHaveLength(3);
    const stopped = dispatcher.stop();
    await clock.advance(1);
    for (const answer of answers) answer();
    await clock.advance(20_000);
    expect(await stopped).toEqual({ finished: 3, released: 0, lost: 0 });
    const message = { id: "x", user: { id: "ann", roles: [], repositories: [] }, address: "", content: {} };
    const late = asked.channel.send(message, { signal: new AbortController().signal });
    await expect(late).rejects.toThrow("closed");
    expect(asked.askedAt).toHaveLength(3);
    const rest = provider(clock, undefined);
    const next = await stage.start({ config: given, clock, channels: [rest.channel] });
    await clock.advance(1_000);
    expect(rest.askedAt).toHaveLength(7);
    expect(next.counts.count("delivered")).toBe(7);
  });

  it("breaks off what doesn't end in time and gives it back, its outcome not known", async () => {
    const clock = new VirtualClock();
    const asked = provider(clock, () => new Promise(() => {}));
    const given = stageConfig({ limits: { attemptTimeoutMs: 60_000 } });
    const dispatcher = await stage.start({ config: given, clock, channels: [asked.channel], graceMs: 1_000 });
    await dispatcher.journal.accept(someEvents(2));
    await clock.advance(1);
    const stopped = dispatcher.stop();
    await clock.advance(20_000);
    expect(await stopped).toEqual({ finished: 0, released: 2, lost: 0 });
    const rest = provider(clock, undefined);
    const next = await stage.start({ config: given, clock, channels: [rest.channel] });
    await clock.advance(1); // no lease is waited for
    expect(rest.askedAt).toHaveLength(2);
    const [id = ""] = stage.ids();
    expect(kindsOf(next, id)).toBe("accepted matched attempt unknown attempt delivered");
  });
});
