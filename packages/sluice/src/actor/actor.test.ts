import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { ClosedError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { shutdown } from "../scope/shutdown.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { ActorContext, ActorEnd, RetireReason } from "./actor-options.ts";
import { Actor } from "./actor.ts";

it("handles one message at a time, and awaits its handler before the next", async () => {
  const log: string[] = [];
  const actor = new Actor<string>(8, () => async (message) => {
    log.push(`${message} begins`);
    await turn();
    log.push(`${message} ends`);
  });
  for (const message of ["a", "b"]) void actor.tell(message);
  await actor.drain();
  expect(log).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

it("never calls a handler in the turn of its sender", async () => {
  const log: string[] = [];
  const actor = new Actor<string>(8, () => (message) => void log.push(message));
  actor.tryTell("a");
  log.push("told");
  await actor.drain();
  expect(log).toEqual(["told", "a"]);
});

it("puts what a handler tells its own actor at the end", async () => {
  const log: string[] = [];
  const actor: Actor<string> = new Actor<string>(8, ({ self }) => (message) => {
    log.push(message);
    if (message === "a") self.tryTell("again");
  });
  for (const message of ["a", "b", "c"]) actor.tryTell(message);
  await actor.drain();
  expect(log).toEqual(["a", "b", "c", "again"]);
});

it("makes its state for the first message, and no two have the same", async () => {
  let made = 0;
  const make = (): Actor<number, number> =>
    new Actor<number, number>(8, () => {
      made += 1;
      let sum = 0;
      return (n) => (sum += n);
    });
  const [one, other] = [make(), make()];
  expect(made).toBe(0);
  expect([await one.ask(1), await one.ask(2), await other.ask(10)]).toEqual([1, 3, 10]);
  expect(made).toBe(2);
});

it("waits for a state that takes time to make, messages in order", async () => {
  const log: unknown[] = [];
  const actor = new Actor<string>(8, async () => {
    await turn();
    return (message) => void log.push(message);
  });
  for (const message of ["a", "b"]) actor.tryTell(message);
  await actor.drain();
  expect(log).toEqual(["a", "b"]);
});

it("lets other things happen while a flood of messages is handled", async () => {
  const clock = new VirtualClock();
  let left = 10_000;
  let beats = 0;
  const actor: Actor<null> = new Actor<null>(
    8,
    ({ self }) =>
      () => {
        left -= 1;
        clock.setTimer(0, { onTimer: () => (beats += 1) });
        if (left > 0 && beats < 3) self.tryTell(null);
      },
    { clock: withNow(clock, () => 10_000 - left) },
  );
  actor.tryTell(null);
  const drained = actor.drain();
  while (actor.size > 0) await clock.advance(1);
  await drained;
  expect([beats > 0, left > 0]).toEqual([true, true]);
});

/** `clock`, with another opinion of what time it is. */
function withNow(clock: Clock, now: () => number): Clock {
  return {
    now,
    wallNow: () => clock.wallNow(),
    setTimer: (delayMs, task, options) => clock.setTimer(delayMs, task, options),
    track: (work) => clock.track(work),
  };
}

it("runs handlers in the async context in which the actor was made, whoever sends", async () => {
  const storage = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const actor = storage.run(
    "maker",
    () =>
      new Actor<string>(8, () => async () => {
        seen.push(storage.getStore());
        await turn();
        seen.push(storage.getStore());
      }),
  );
  await storage.run("sender", () => actor.ask("a"));
  await storage.run("another", () => actor.ask("b"));
  expect(seen).toEqual(["maker", "maker", "maker", "maker"]);
});

it("drains when nothing is left, at once when nothing is there, and turns nobody away", async () => {
  const log: string[] = [];
  const actor = new Actor<string>(8, () => async (message) => {
    await turn();
    log.push(message);
  });
  await actor.drain();
  actor.tryTell("a");
  const drained = actor.drain().then(() => log.push("drained"));
  actor.tryTell("b");
  await drained;
  expect(log).toEqual(["a", "b", "drained"]);
});

it("ends after what was accepted when it is closed, and puts its state away", async () => {
  const log: string[] = [];
  const actor = new Actor<string>(8, () => ({
    receive: (message) => void log.push(message),
    retire: async (why) => {
      await turn();
      log.push(why);
    },
  }));
  for (const message of ["a", "b"]) actor.tryTell(message);
  const ends: ActorEnd[] = [];
  actor.watch((end) => ends.push(end));
  actor.close();
  actor.close();
  expect(actor.closed).toBe(true);
  await actor.drain();
  expect([log, ends]).toEqual([["a", "b", "end"], [{ why: "closed", reason: undefined }]]);
});

it("ends after the message at hand when it is closed and cleared", async () => {
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const lost: string[] = [];
  const actor = new Actor<string>(
    8,
    () =>
      async (message, { signal }) => {
        await gate.promise;
        log.push(`${message} ${signal.aborted}`);
      },
    { onUndelivered: (message) => void lost.push(message) },
  );
  for (const message of ["a", "b", "c"]) actor.tryTell(message);
  await turn();
  actor.close();
  expect(actor.clear()).toBe(2);
  gate.resolve();
  await actor.drain();
  expect([log, lost, actor.size]).toEqual([["a false"], ["b", "c"], 0]);
});

it("aborts the message at hand, gives up the rest with the reason, and then ends", async () => {
  const lost: unknown[] = [];
  const actor = new Actor<string>(
    8,
    () =>
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
    { onUndelivered: (message, reason) => lost.push([message, reason]) },
  );
  actor.tryTell("a");
  await turn();
  actor.tryTell("b");
  const asked = actor.ask("c");
  const ends: ActorEnd[] = [];
  actor.watch((end) => ends.push(end));
  const reason = new Error("enough");
  actor.abort(reason);
  await expect(asked).rejects.toBe(reason);
  await actor.drain();
  expect([lost, ends]).toEqual([[["b", reason]], [{ why: "aborted", reason }]]);
  expect(actor.stats()).toMatchObject({ failed: 0, running: 0, closed: true });
  actor.abort(new Error("too late"));
  expect(ends).toHaveLength(1);
});

it("tells who watches once that it has ended, also who comes late, but nobody who has stopped watching", async () => {
  const actor = new Actor<string>(8, () => () => {});
  const log: string[] = [];
  actor.watch(() => log.push("early"));
  actor.watch(() => log.push("never"))();
  actor.close();
  await actor.drain();
  actor.watch(() => log.push("late"));
  actor.watch(() => log.push("never"))();
  await turn();
  expect(log).toEqual(["early", "late"]);
});

it("ends at the end of the block, after what was accepted", async () => {
  const log: string[] = [];
  {
    await using actor = new Actor<string>(8, () => async (message) => {
      await turn();
      log.push(message);
    });
    for (const message of ["a", "b"]) actor.tryTell(message);
  }
  expect(log).toEqual(["a", "b"]);
});

it("is drained by a shutdown, and aborted when its time is up", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock, timeoutMs: 100 });
  const quick = new Actor<string>(8, () => () => {});
  const stuck = new Actor<string>(
    8,
    () =>
      (_, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => resolve());
        }),
  );
  stopping.add("quick", quick);
  stopping.add("stuck", stuck);
  quick.tryTell("a");
  stuck.tryTell("a");
  await turn();
  void stopping.stop();
  await clock.advance(100);
  const { targets } = await stopping.finished;
  expect(targets.map(({ name, phase }) => [name, phase])).toEqual([
    ["quick", "drain"],
    ["stuck", "drain"],
  ]);
  await stuck.drain();
  expect([quick.stats().completed, stuck.stats().completed]).toEqual([1, 1]);
});

it("puts its state away when it is idle, and makes a new one for the next message", async () => {
  const clock = new VirtualClock();
  const saved: number[] = [];
  const why: RetireReason[] = [];
  const actor = new Actor<number, number>(
    8,
    async ({ signal }) => {
      signal.addEventListener("abort", () => saved.push(-1));
      let sum = saved.at(-1) ?? 0;
      await turn();
      return {
        receive: (n) => (sum += n),
        retire: async (reason) => {
          await turn();
          why.push(reason);
          saved.push(sum);
        },
      };
    },
    { clock, idleMs: 1_000 },
  );
  expect(await actor.ask(1)).toBe(1);
  await clock.advance(900);
  expect(await actor.ask(2)).toBe(3);
  await clock.advance(999);
  expect([why, actor.stats().passivated]).toEqual([[], 0]);
  await clock.advance(1);
  const next = actor.ask(4); // while the state is being saved
  expect(await next).toBe(7);
  expect([why, saved, actor.stats().passivated, clock.timers]).toEqual([["idle"], [-1, 3], 1, 1]);
  actor.close();
  await actor.drain();
  expect([saved, clock.timers]).toEqual([[-1, 3, -1, 7], 0]);
});

it("F07.3: tells of a message that takes too long, once and while it is still handled", async () => {
  const clock = new VirtualClock();
  const slow: unknown[] = [];
  const actor = new Actor<number>(
    8,
    () => (ms) => new Promise<void>((resolve) => void clock.setTimer(ms, { onTimer: resolve })),
    { clock, slowMs: 100, onSlow: (message, ranMs) => slow.push([message, ranMs, actor.stats().running]) },
  );
  for (const ms of [60, 70, 300, 40]) actor.tryTell(ms);
  await clock.advance(229);
  expect([slow, actor.stats().oldestRunMs]).toEqual([[], 99]);
  await clock.advance(1);
  expect(slow).toEqual([[300, 100, 1]]);
  await clock.advance(1_000);
  expect([slow, actor.stats().slow, actor.stats().completed]).toEqual([[[300, 100, 1]], 1, 4]);
  expect(clock.timers).toBe(0);
});

it("F07.3: tells afterwards of a message that kept every timer from firing", async () => {
  const clock = new VirtualClock();
  let now = 0;
  const slow: unknown[] = [];
  const actor = new Actor<string>(8, () => () => void (now += 2_000), {
    clock: withNow(clock, () => now),
    slowMs: 1_000,
    onSlow: (...facts) => slow.push(facts),
  });
  actor.tryTell("a");
  await actor.drain();
  expect(slow).toEqual([["a", 2_000]]);
});

it("is found by its name, and tells its children", async () => {
  const actor = new Actor<string>(
    8,
    ({ spawn }) =>
      () =>
        void spawn(1, () => () => {}),
    { name: "parent" },
  );
  expect(namedEntries().some(({ kind, name }) => kind === "actor" && name === "parent")).toBe(true);
  await actor.ask("a");
  expect(actor.stats().children).toBe(1);
});

it("says what is wrong with an option", () => {
  const bad = [
    [{ idleMs: -1 }, "idleMs"],
    [{ slowMs: Number.NaN }, "slowMs"],
    [{ slowMs: 1, onSlow: 1 }, "onSlow must be a function, got number"],
    [{ whenFull: "throw" }, "whenFull"],
    [{ onFailure: "retry" }, "onFailure must be one of resume, restart, stop, escalate, got retry"],
    [{ maxRestarts: -1 }, "maxRestarts"],
    [{ restartWindowMs: -1 }, "restartWindowMs"],
    [{ backoff: 5 }, "backoff must be a function, got number"],
    [{ random: 5 }, "random must be a function, got number"],
    [{ children: "all" }, "children"],
    [{ copy: true }, "copy must be a function, got boolean"],
    [{ onUndelivered: true }, "onUndelivered must be a function, got boolean"],
    [{ name: 1 }, "name"],
  ] as const;
  for (const [options, says] of bad) expect(() => new Actor(1, () => () => {}, options as object)).toThrow(says);
  expect(() => new Actor(1, "setup" as unknown as () => () => void)).toThrow("setup must be a function, got string");
});

it("fails the message for which a setup returns what handles nothing", async () => {
  const actor = new Actor<string>(1, () => ({}) as () => void);
  await expect(actor.ask("a")).rejects.toThrow("receive, must be a function, got undefined");
});

it("spawns no child for a state that was put away", async () => {
  const contexts: ActorContext<string, unknown>[] = [];
  const actor = new Actor<string>(1, (context) => {
    contexts.push(context);
    return () => {};
  });
  await actor.ask("a");
  actor.close();
  await actor.drain();
  expect(() => contexts[0]?.spawn(1, () => () => {})).toThrow(ClosedError);
});
