import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { QueueFullError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Gate } from "./gate.ts";

const verbs = {
  wait: (gate: Gate, options: object) => gate.wait(options),
  run: (gate: Gate, options: object) => gate.run(() => {}, options),
};
const cases = Object.entries(verbs).flatMap(([verb, call]) =>
  abortCases({
    name: `Gate.${verb}`,
    open(clock) {
      const gate = new Gate({ clock });
      return {
        call: (options) => call(gate, options),
        satisfy: () => gate.open(),
        state: () => ({ open: Number(gate.isOpen), waiting: gate.waiting }),
      };
    },
  }),
);
for (const { title, run } of cases) it(title, run);

it("holds callers while it is closed, and lets all through in the order they came when it opens", async () => {
  const gate = new Gate();
  const through: string[] = [];
  for (const name of ["a", "b", "c"]) void gate.wait().then(() => through.push(name));
  await turn();
  expect([gate.isOpen, gate.waiting, through]).toEqual([false, 3, []]);
  gate.open();
  await turn();
  expect([gate.isOpen, gate.waiting, through]).toEqual([true, 0, ["a", "b", "c"]]);
});

it("may be closed again, and then holds who comes next, but not who was let through", async () => {
  const gate = new Gate();
  const first = gate.wait();
  gate.open();
  gate.close();
  const second = gate.wait();
  await first;
  expect([gate.isOpen, gate.waiting]).toEqual([false, 1]);
  gate.open();
  await second;
});

it("lets those through that wait now and nobody else when it is pulsed", async () => {
  const gate = new Gate();
  const waiting = [gate.wait(), gate.wait()];
  gate.pulse();
  await Promise.all(waiting);
  const late = gate.wait();
  expect([gate.isOpen, gate.waiting, gate.stats().passed]).toEqual([false, 1, 2]);
  gate.open();
  await late;
});

it("calls fn at once while it is open, else when it opens, and lets it run on when it closes", async () => {
  const gate = new Gate({ open: true });
  const log: string[] = [];
  const { promise, resolve: finish } = Promise.withResolvers<void>();
  const running = gate.run(() => promise.then(() => log.push("first")));
  gate.close();
  const held = gate.run(() => log.push("second"));
  await turn();
  expect([log, gate.waiting]).toEqual([[], 1]);
  finish();
  await running;
  gate.open();
  expect([await held, log]).toEqual([2, ["first", "second"]]);
});

it("does not call fn when the signal aborts between the opening and the call", async () => {
  const gate = new Gate();
  const call = new AbortController();
  let called = false;
  const result = gate.run(() => void (called = true), { signal: call.signal });
  gate.open();
  call.abort(new Error("late"));
  await expect(result).rejects.toBe(call.signal.reason);
  expect(called).toBe(false);
});

it("rejects and calls nothing when options are bad, open or closed", async () => {
  let called = false;
  for (const open of [true, false]) {
    const gate = new Gate({ open });
    for (const bad of [{ timeoutMs: -1 }, { signal: {} }, null])
      await expect(gate.run(() => void (called = true), bad as object)).rejects.toThrow();
    expect([called, gate.waiting, gate.stats().passed]).toEqual([false, 0, 0]);
  }
  expect(() => new Gate({ maxWaiting: -1 })).toThrow("maxWaiting must be an integer >= 0 or Infinity, got -1");
  expect(() => new Gate({ open: "false" as unknown as boolean })).toThrow("open must be a boolean, got string");
});

it("turns away who would wait when as many wait as may", async () => {
  const gate = new Gate({ maxWaiting: 1 });
  const first = gate.wait();
  await expect(gate.wait()).rejects.toThrow(QueueFullError);
  expect(gate.stats()).toMatchObject({ waiting: 1, rejected: 1 });
  gate.open();
  await Promise.all([first, gate.wait()]);
});

it("lets nobody through who is about to hear of its abort, though it opens in the midst of that", async () => {
  const gate = new Gate();
  const call = new AbortController();
  call.signal.addEventListener("abort", () => gate.open());
  const outcomes = Promise.allSettled([gate.wait({ signal: call.signal }), gate.wait()]);
  call.abort("gone");
  expect(await outcomes).toMatchObject([{ status: "rejected", reason: "gone" }, { status: "fulfilled" }]);
  expect(gate.stats()).toMatchObject({ waiting: 0, passed: 1 });
});

it("settles in the same number of turns whether it was open or has been opened", async () => {
  const [open, shut] = [new Gate({ open: true }), new Gate()];
  const fast = await turnsUntil(open.wait());
  const waiter = shut.wait();
  shut.open();
  expect(await turnsUntil(waiter)).toBe(fast);
  expect([open.stats().passed, shut.stats().passed]).toEqual([1, 1]);
});

it("tells by name whether it is open, who waits and since when", async () => {
  const clock = new VirtualClock();
  const gate = new Gate({ name: "maintenance", clock });
  const call = new AbortController();
  const waits = [gate.wait(), gate.wait({ timeoutMs: 10 }), gate.wait({ signal: call.signal })];
  const settled = Promise.allSettled(waits);
  await clock.advance(30);
  call.abort();
  expect(gate.stats()).toEqual({
    isOpen: false,
    waiting: 1,
    oldestWaitMs: 30,
    passed: 0,
    rejected: 0,
    timedOut: 1,
    aborted: 1,
  });
  gate.open();
  await settled;
  expect(gate.stats()).toMatchObject({ isOpen: true, waiting: 0, oldestWaitMs: 0, passed: 1 });
  const entry = namedEntries().find(({ name }) => name === "maintenance");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["gate", gate]);
});

it("lets through exactly those who came before an opening or a pulse, or while it was open", () => {
  const step = fc.constantFrom("wait", "wait", "open", "close", "pulse");
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (plan) => {
    const gate = new Gate();
    const through: number[] = [];
    let [open, asked, expected] = [false, 0, 0];
    for (const one of plan) {
      if (one === "wait") {
        const id = asked++;
        void gate.wait().then(() => through.push(id));
      } else gate[one]();
      open = one === "open" || (open && one !== "close");
      if (open || one === "pulse") expected = asked;
      expect([gate.isOpen, gate.waiting]).toEqual([open, asked - expected]);
    }
    await turn();
    expect(through).toEqual(Array.from({ length: expected }, (_, id) => id));
  });
  return fc.assert(plans, { numRuns: 300 });
});

async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  const settled = promise.then(() => turns);
  const tick = (): void => {
    turns += 1;
    if (turns < 20) queueMicrotask(tick);
  };
  queueMicrotask(tick);
  return settled;
}
