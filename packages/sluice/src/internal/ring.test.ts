import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { Ring } from "./ring.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("gives its items back in order under any plan of pushes and shifts", () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: -70, max: -1 }));
  // Pinned: it grows while it wraps round, and shrinks while it does.
  const found = [10, -8, 14, 1, -3, 60, -70, 64, -40, 30, -50];
  const plans = fc.property(fc.array(step, { maxLength: 40 }), play);
  fc.assert(plans, { numRuns: 300, examples: [[found]] });
});

/** Pushes that many items, or shifts that many. */
function play(plan: readonly number[]): void {
  const ring = new Ring<number>();
  const model: number[] = [];
  let pushed = 0;
  for (const step of plan) {
    for (let times = step; times > 0; times -= 1) {
      ring.push(pushed);
      model.push(pushed);
      pushed += 1;
    }
    const left = Array.from({ length: Math.max(0, -step) }, () => ring.shift());
    expect(left).toEqual(left.map(() => model.shift()));
    expect([ring.size, ring.peek(), ring.second]).toEqual([model.length, model[0], model[1]]);
  }
}

it("tells an undefined item from none by its size", () => {
  const ring = new Ring<undefined>();
  ring.push(undefined);
  expect([ring.size, ring.shift(), ring.size, ring.shift(), ring.size]).toEqual([1, undefined, 0, undefined, 0]);
});

it("keeps nothing alive that has left", async () => {
  const ring = new Ring<object>();
  const left = fillAndEmpty(ring, 10);
  await turn(); // a new WeakRef holds its target for the rest of the turn
  collectGarbage();
  expect(left.map((ref) => ref.deref())).toEqual(Array.from({ length: 10 }));
  expect(ring.size).toBe(1);
});

/** In a function of its own, so that no variable holds an item. */
function fillAndEmpty(ring: Ring<object>, count: number): WeakRef<object>[] {
  const refs = Array.from({ length: count }, (_, id) => {
    const item = { id };
    ring.push(item);
    return new WeakRef(item);
  });
  ring.push({ id: count });
  for (const _ of refs) ring.shift();
  return refs;
}

it("gives the memory of a burst back", () => {
  const ring = new Ring<number>();
  ring.push(-1);
  const before = heapUsed();
  for (let item = 0; item < 1_000_000; item += 1) ring.push(item);
  const full = heapUsed();
  for (let item = 0; item < 1_000_000; item += 1) ring.shift();
  expect(full - before).toBeGreaterThan(4_000_000);
  expect(heapUsed() - before).toBeLessThan(1_000_000);
  expect(ring.shift()).toBe(999_999);
});

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

it("C036: 800 000 pushes and shifts at a depth of 200 000 end within the limit for a test", () => {
  const ring = new Ring<number>();
  for (let item = 0; item < 200_000; item += 1) ring.push(item);
  for (let item = 200_000; item < 1_000_000; item += 1) {
    ring.push(item);
    if (ring.shift() !== item - 200_000) expect.fail(`lost ${item - 200_000}`);
  }
  expect(ring.size).toBe(200_000);
});
