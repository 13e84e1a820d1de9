/** A clock is foreign code: one that throws fails a message, or goes without the watch it was for, and stops no actor. */
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Clock, Timer, TimerOptions, TimerTask } from "../clock/clock.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { ActorEnd } from "./actor-options.ts";
import { Actor } from "./actor.ts";
import { KeyedActors } from "./keyed-actors.ts";

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): unknown => unhandled.push((error as Error).message);
const others = process.listeners("unhandledRejection");

beforeEach(() => {
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", onUnhandled);
});
afterEach(() => {
  process.removeListener("unhandledRejection", onUnhandled);
  unhandled.length = 0;
  for (const each of others) process.on("unhandledRejection", each);
});

class FaultyClock implements Clock {
  broken: "now" | "setTimer" | undefined;
  readonly virtual: VirtualClock = new VirtualClock();

  now(): number {
    if (this.broken === "now") throw new Error("no time");
    return this.virtual.now();
  }

  coarseNow(): number {
    return this.virtual.now();
  }

  wallNow(): number {
    return this.virtual.wallNow();
  }

  setTimer(delayMs: number, task: TimerTask, options?: TimerOptions): Timer {
    if (this.broken === "setTimer") throw new Error("no timer");
    return this.virtual.setTimer(delayMs, task, options);
  }

  track<T>(work: Promise<T>): Promise<T> {
    return this.virtual.track(work);
  }
}

it("fails the message for which the clock throws, and goes on as its supervision says", async () => {
  const clock = new FaultyClock();
  const failures: unknown[] = [];
  const actor = new Actor<number, number>(8, () => (n) => n, {
    name: "timed",
    clock,
    onFailure: (error, { message }) => {
      failures.push([message, (error as Error).message]);
      return "resume";
    },
  });
  expect(await actor.ask(1)).toBe(1);
  clock.broken = "now";
  await expect(actor.ask(2)).rejects.toThrow("no time");
  clock.broken = undefined;
  expect(await actor.ask(3)).toBe(3);
  expect(failures).toEqual([[2, "no time"]]);
  expect(actor.stats()).toMatchObject({ completed: 3, failed: 1, running: 0, waitingReplies: 0 });
});

it("ends by a clock that throws when its supervision says so, and who drains and who watches hears of it", async () => {
  const clock = new FaultyClock();
  const ends: ActorEnd[] = [];
  const actor = new Actor<number>(8, () => () => {}, { name: "timed", clock, onFailure: "stop" });
  actor.watch((end) => void ends.push(end));
  clock.broken = "now";
  actor.tryTell(1);
  await actor.drain();
  await turn();
  expect(ends).toMatchObject([{ why: "failed", reason: { message: "no time" } }]);
  expect(unhandled).toEqual(["no time", "no time"]); // of the message, which was told, and when the state was put away
  expect(actor.closed).toBe(true);
});

it("puts its state away though the clock throws", async () => {
  const clock = new FaultyClock();
  const retired: string[] = [];
  const actor = new Actor<number>(8, () => ({ receive: () => {}, retire: (why) => void retired.push(why) }), {
    name: "timed",
    clock,
  });
  await actor.ask(1);
  clock.broken = "now";
  actor.close();
  await actor.drain();
  await turn();
  expect([retired, unhandled]).toEqual([["end"], ["no time"]]);
});

it.each([["now", "no time"] as const, ["setTimer", "no timer"] as const])(
  "handles each message of a flood though the clock throws in `%s`, without the rests",
  async (broken, says) => {
    const clock = new FaultyClock();
    const handled: number[] = [];
    const actor = new Actor<number>(
      40,
      () => (n) => {
        handled.push(n);
        if (n === 10) clock.broken = broken;
      },
      { clock },
    );
    const messages = Array.from({ length: 40 }, (_, n) => n);
    await clock.virtual.advance(8);
    for (const n of messages) actor.tryTell(n);
    await actor.drain();
    await turn();
    expect(handled).toEqual(messages);
    expect(unhandled).toEqual([says, says]);
  },
);

it("replies though the clock cannot say how long it took", async () => {
  const clock = new FaultyClock();
  const slow: number[] = [];
  const actor = new Actor<number, number>(
    8,
    () => (n) => {
      if (n === 1) clock.broken = "now";
      return n;
    },
    { clock, slowMs: 10, onSlow: (n) => void slow.push(n) },
  );
  expect(await actor.ask(1)).toBe(1);
  clock.broken = undefined;
  await clock.virtual.advance(20); // past the limit of the message whose end it did not see
  expect(await actor.ask(2)).toBe(2);
  await turn();
  expect([slow, unhandled]).toEqual([[], ["no time"]]);
  expect(actor.stats()).toMatchObject({ completed: 2, failed: 0, slow: 0 });
});

it("watches the next message though no timer could be set for the last", async () => {
  const clock = new FaultyClock();
  const gate = Promise.withResolvers<void>();
  const slow: number[] = [];
  const actor = new Actor<number>(8, () => () => gate.promise, {
    clock,
    slowMs: 10,
    onSlow: (n) => void slow.push(n),
    onFailure: "resume",
  });
  clock.broken = "setTimer";
  await expect(actor.ask(1)).rejects.toThrow("no timer");
  clock.broken = undefined;
  const asked = actor.ask(2);
  await turn();
  await clock.virtual.advance(10);
  expect(slow).toEqual([2]); // by the timer: at its end it would be told anyway
  gate.resolve();
  await asked;
});

it("goes on without the rest before a restart that the clock cannot time", async () => {
  const clock = new FaultyClock();
  const actor = new Actor<number, number>(
    8,
    () => (n) => {
      if (n < 0) throw new Error("odd");
      return n;
    },
    { clock, backoff: () => 1_000 },
  );
  clock.broken = "setTimer";
  await expect(actor.ask(-1)).rejects.toThrow("odd");
  await expect(actor.ask(-2)).rejects.toThrow("odd");
  expect(await actor.ask(3)).toBe(3);
  await turn();
  expect(unhandled).toEqual(["no timer"]);
});

it("keeps count of a key whose idleness the clock cannot time", async () => {
  const clock = new FaultyClock();
  const actors = new KeyedActors<string, string, string>(
    8,
    (key) => (message) => {
      if (key === "a") clock.broken = "now";
      return `${key} ${message}`;
    },
    { clock, maxActors: 1 },
  );
  expect(await actors.ask("a", "hello")).toBe("a hello");
  await turn();
  expect(actors.stats()).toMatchObject({ actors: 1, idle: 1 });
  clock.broken = undefined;
  expect(await actors.ask("b", "hello")).toBe("b hello"); // in place of the first
  await turn();
  expect(actors.stats()).toMatchObject({ actors: 1, made: 2, passivated: 1 });
  expect(unhandled).toEqual(["no time"]);
});
