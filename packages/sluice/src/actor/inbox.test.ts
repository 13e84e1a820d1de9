import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClearedError, ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import type { WhenFull } from "../flow/queue-options.ts";
import { type ObservedEvent, onEvent } from "../observe/events.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { ActorOptions } from "./actor-options.ts";
import { Actor } from "./actor.ts";

const subjects: readonly AbortSubject[] = [
  {
    name: "Actor.ask",
    open(clock) {
      const { actor, finish } = busy(8, { clock });
      return {
        call: (options) => actor.ask(1, options),
        satisfy: finish,
        state: () => ({ inside: actor.size + actor.stats().running, waiting: actor.stats().waitingReplies }),
      };
    },
  },
  {
    name: "Actor.ask of a full mailbox",
    open(clock) {
      const { actor, finish } = busy(1, { clock }, 1);
      return {
        call: (options) => actor.ask(2, options),
        satisfy: finish,
        state: () => ({ size: actor.size, line: actor.stats().waitingSenders, waiting: actor.stats().waitingReplies }),
      };
    },
  },
  {
    name: "Actor.tell",
    open(clock) {
      const { actor, finish } = busy(1, { clock }, 1);
      return {
        call: (options) => actor.tell(2, options),
        satisfy: finish,
        state: () => ({ size: actor.size, waiting: actor.stats().waitingSenders }),
      };
    },
  },
];

for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

/** Busy with message 0 until `finish`, and sends itself another with that; replies with twice the message. */
function busy(
  capacity: number,
  options: ActorOptions<number> = {},
  another?: number,
): { actor: Actor<number, number>; finish: () => Promise<void>; handled: number[] } {
  const gate = Promise.withResolvers<void>();
  const handled: number[] = [];
  const actor = new Actor<number, number>(
    capacity,
    () => async (message) => {
      handled.push(message);
      if (message === 0 && another !== undefined) actor.tryTell(another);
      if (message === 0) await gate.promise;
      return 2 * message;
    },
    options,
  );
  actor.tryTell(0);
  return {
    actor,
    handled,
    finish: () => {
      gate.resolve();
      return actor.drain();
    },
  };
}

it("replies with what the handler returns, or with what it throws", async () => {
  const failure = new Error("odd");
  const half = new Actor<number, number>(4, () => (n) => {
    if (n % 2 === 1) throw failure;
    return n / 2;
  });
  expect(await half.ask(8)).toBe(4);
  await expect(half.ask(3)).rejects.toBe(failure);
  const later = new Actor<number, number>(4, () => async (n) => {
    await turn();
    if (n % 2 === 1) throw failure;
    return n / 2;
  });
  expect(await later.ask(8)).toBe(4);
  await expect(later.ask(3)).rejects.toBe(failure);
});

it("F07.1: holds no more messages than its capacity, and lets its senders wait for room", async () => {
  const { actor, finish, handled } = busy(2);
  await turn();
  const told = [1, 2, 3, 4].map((n) => actor.tell(n));
  expect(actor.stats()).toMatchObject({ size: 2, waitingSenders: 2, running: 1 });
  await finish();
  expect(await Promise.all(told)).toEqual([true, true, true, true]);
  expect(handled).toEqual([0, 1, 2, 3, 4]);
});

it("refuses a capacity that is none", () => {
  for (const capacity of [0, 1.5, -1, Infinity, Number.NaN])
    expect(() => new Actor(capacity, () => () => {})).toThrow("capacity must be an integer >= 1");
});

it.each([
  ["reject", [1, 2], "QUEUE_FULL", []],
  ["drop-newest", [1, 2], false, []],
  ["drop-oldest", [2, 3], true, [1]],
] as const)("does what it is told when the mailbox is full: %s", async (whenFull, handledThen, outcome, evicted) => {
  const lost: number[] = [];
  const onUndelivered = (message: number, reason: unknown): void => {
    expect(reason).toBeInstanceOf(QueueFullError);
    lost.push(message);
  };
  const { actor, finish, handled } = busy(2, { whenFull, onUndelivered });
  await turn();
  expect(await Promise.all([actor.tell(1), actor.tell(2)])).toEqual([true, true]);
  expect(await actor.tell(3).catch((error: QueueFullError) => error.code)).toBe(outcome);
  const { rejected, dropped, undelivered } = actor.stats();
  expect([rejected, dropped, undelivered]).toEqual([
    Number(outcome === "QUEUE_FULL"),
    Number(outcome !== "QUEUE_FULL"),
    evicted.length,
  ]);
  await finish();
  expect(handled).toEqual([0, ...handledThen]);
  expect(lost).toEqual(evicted);
});

it("asks a function for each message that finds no room, and hands it what was sent", async () => {
  const seen: number[] = [];
  const whenFull = (message: number): WhenFull => {
    seen.push(message);
    return message > 5 ? "drop-oldest" : "reject";
  };
  const { actor, finish, handled } = busy(1, { whenFull });
  await turn();
  const evicted = actor.ask(1);
  const refused = actor.ask(2);
  expect(actor.tryTell(6)).toBe(true);
  await expect(evicted).rejects.toThrow(QueueFullError);
  await expect(refused).rejects.toThrow(QueueFullError);
  await finish();
  expect([seen, handled]).toEqual([
    [2, 6],
    [0, 6],
  ]);
});

it("rejects an ask whose message is dropped", async () => {
  const { actor, finish } = busy(1, { whenFull: "drop-newest" });
  await turn();
  const first = actor.ask(1);
  await expect(actor.ask(2)).rejects.toMatchObject({ code: "QUEUE_FULL", limit: 1 });
  expect(actor.stats()).toMatchObject({ waitingReplies: 1, dropped: 1 });
  await finish();
  expect(await first).toBe(2);
});

it("answers at once whether a message was accepted, and never waits", async () => {
  const { actor, finish, handled } = busy(1);
  await turn();
  expect([actor.tryTell(1), actor.tryTell(2)]).toEqual([true, false]);
  expect(actor.stats()).toMatchObject({ size: 1, rejected: 1 });
  await finish();
  actor.close();
  expect(actor.tryTell(3)).toBe(false);
  expect(handled).toEqual([0, 1]);
});

it("keeps the order of each sender, whether it tells or asks, waits for room or not", async () => {
  const { actor, finish, handled } = busy(2);
  await turn();
  const sent = [1, 2, 3, 4, 5, 6].map((n) => (n % 2 === 0 ? actor.ask(n) : actor.tell(n)));
  await finish();
  await Promise.all(sent);
  expect(handled).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

it("passes over the message of who asked and has left, and frees its place at once", async () => {
  const { actor, finish, handled } = busy(2);
  await turn();
  const call = new AbortController();
  const left = actor.ask(1, { signal: call.signal });
  const [stays, waits] = [actor.ask(2), actor.tell(3)];
  expect(actor.stats()).toMatchObject({ size: 2, waitingSenders: 1 });
  call.abort(new Error("changed my mind"));
  await expect(left).rejects.toBe(call.signal.reason);
  expect(actor.stats()).toMatchObject({ size: 2, waitingSenders: 0, skipped: 1, waitingReplies: 1 });
  await finish();
  expect([await stays, await waits, handled]).toEqual([4, true, [0, 2, 3]]);
});

it("keeps nothing of asks that were given up while it was stuck", async () => {
  const { actor, finish, handled } = busy(4);
  await turn();
  actor.tryTell(1);
  for (let round = 0; round < 1_000; round += 1) {
    const call = new AbortController();
    const asks = [actor.ask(2, { signal: call.signal }), actor.ask(3, { signal: call.signal })];
    call.abort();
    await Promise.allSettled(asks);
  }
  actor.tryTell(4);
  expect(actor.stats()).toMatchObject({ size: 2, skipped: 2_000, waitingReplies: 0 });
  await finish();
  expect(handled).toEqual([0, 1, 4]);
});

it("ends an ask at its deadline, aborts the handler's signal, and counts the reply that comes late", async () => {
  const clock = new VirtualClock();
  const gate = Promise.withResolvers<void>();
  let heard: unknown;
  const actor = new Actor<string, string>(
    4,
    () =>
      async (_, { signal }) => {
        signal.addEventListener("abort", () => (heard = signal.reason));
        await gate.promise;
        return "late";
      },
    { clock },
  );
  const asked = actor.ask("slow", { timeoutMs: 50 });
  const rejected = expect(asked).rejects.toThrow(TimeoutError);
  await clock.advance(50);
  await rejected;
  expect(heard).toBeInstanceOf(TimeoutError);
  expect(actor.stats()).toMatchObject({ running: 1, timedOut: 1, lateReplies: 0 });
  gate.resolve();
  await actor.drain();
  expect(actor.stats()).toMatchObject({ running: 0, completed: 1, failed: 0, lateReplies: 1 });
});

it("takes it for no failure when a handler ends since nobody wants its reply any more", async () => {
  const actor = new Actor<string, string>(
    4,
    () =>
      (_, { signal }) =>
        new Promise<string>((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
  );
  const call = new AbortController();
  const asked = actor.ask("slow", { signal: call.signal });
  await turn();
  call.abort(new Error("gone"));
  await expect(asked).rejects.toBe(call.signal.reason);
  await actor.drain();
  expect(actor.stats()).toMatchObject({ completed: 1, failed: 0, restarts: 0, lateReplies: 1 });
});

it("asks only an actor that is idle when timeoutMs is 0", async () => {
  const { actor, finish, handled } = busy(4);
  await turn();
  await expect(actor.ask(1, { timeoutMs: 0 })).rejects.toMatchObject({ code: "TIMEOUT", timeoutMs: 0 });
  await finish();
  expect(await actor.ask(2, { timeoutMs: 0 })).toBe(4);
  expect(handled).toEqual([0, 2]);
});

it("turns away who comes or waits for room once it is closed, and handles what was accepted", async () => {
  const { actor, finish, handled } = busy(1);
  await turn();
  const accepted = actor.tell(1);
  const [teller, asker] = [actor.tell(2), actor.ask(3)];
  actor.close();
  for (const late of [teller, asker, actor.tell(4), actor.ask(5)]) await expect(late).rejects.toThrow(ClosedError);
  await finish();
  expect([await accepted, handled]).toEqual([true, [0, 1]]);
  expect(actor.stats()).toMatchObject({ closed: true, waitingSenders: 0, waitingReplies: 0, rejected: 4 });
});

it("gives up what is in the mailbox when it is cleared: who asked gets the reason, what was told goes to the sink", async () => {
  const lost: unknown[] = [];
  const { actor, finish, handled } = busy(4, { onUndelivered: (message, reason) => lost.push([message, reason]) });
  await turn();
  await actor.tell(1);
  const asked = actor.ask(2);
  const reason = new Error("stale");
  expect(actor.clear(reason)).toBe(2);
  await expect(asked).rejects.toBe(reason);
  expect(lost).toEqual([[1, reason]]);
  void actor.tell(3);
  actor.clear();
  expect(lost[1]).toEqual([3, expect.any(ClearedError)]);
  await finish();
  expect([handled, actor.stats().undelivered]).toEqual([[0], 3]);
});

it("tells who listens of each message that is given up without a sink", async () => {
  const events: ObservedEvent[] = [];
  const stop = onEvent((event) => void events.push(event));
  const { actor, finish } = busy(4, { name: "forgetful" });
  await turn();
  await actor.tell(1);
  actor.clear();
  await finish();
  stop();
  expect(events).toMatchObject([{ name: "dropped", detail: 1, subject: { kind: "actor", name: "forgetful" } }]);
});

it("tells depth, age and counts by name", async () => {
  const clock = new VirtualClock();
  const { actor, finish } = busy(4, { clock, name: "known" });
  await turn();
  await actor.tell(1);
  await clock.advance(30);
  await actor.tell(2);
  await clock.advance(20);
  expect(actor.stats()).toMatchObject({ size: 2, oldestAgeMs: 50, running: 1, oldestRunMs: 50, concurrency: 1 });
  await finish();
  expect(actor.stats()).toMatchObject({ size: 0, oldestAgeMs: 0, running: 0, oldestRunMs: 0, completed: 3 });
});

it("rejects for bad options and an aborted signal, and takes nothing", async () => {
  const { actor, finish, handled } = busy(4);
  await turn();
  await expect(actor.tell(1, { timeoutMs: -1 })).rejects.toThrow("timeoutMs must be >= 0, got -1");
  await expect(actor.ask(1, { timeoutMs: Number.NaN })).rejects.toThrow("timeoutMs");
  const reason = new Error("before");
  await expect(actor.tell(1, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await expect(actor.ask(1, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await finish();
  expect(handled).toEqual([0]);
});
