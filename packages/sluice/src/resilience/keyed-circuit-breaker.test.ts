import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { CircuitOpenError } from "../errors.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { CircuitBreaker } from "./circuit-breaker.ts";
import { isolate } from "./circuit-isolation.ts";
import { KeyedCircuitBreaker, type KeyedCircuitBreakerOptions } from "./keyed-circuit-breaker.ts";

const down = new Error("down");

function make(options: KeyedCircuitBreakerOptions = {}): { clock: VirtualClock; keyed: KeyedCircuitBreaker } {
  const clock = new VirtualClock();
  return { clock, keyed: new KeyedCircuitBreaker({ failures: 1, cooldownMs: 1_000, clock, ...options }) };
}

async function trip(keyed: KeyedCircuitBreaker, key: string): Promise<void> {
  await keyed.run(key, () => Promise.reject(down)).catch(() => {});
}

it("lets one provider fail without turning calls to another away", async () => {
  const { keyed } = make();
  await trip(keyed, "mail");
  await expect(keyed.run("mail", () => 1)).rejects.toThrow(CircuitOpenError);
  expect(await keyed.run("push", () => 1)).toBe(1);
  expect([keyed.for("mail").state, keyed.for("push").state]).toEqual(["open", "closed"]);
  expect(keyed.stats()).toEqual({ keys: 2, tripped: 1, evicted: 0 });
});

it("forgets no breaker though the clock throws when its state changes", async () => {
  const { keyed, clock } = make();
  const breaker = keyed.for("a");
  const unhandled = await unhandledIn(async () => {
    for (let reading = 1; reading <= 4; reading += 1) {
      breaker.close();
      let left = reading;
      const now = vi.spyOn(clock, "now").mockImplementation(() => {
        if ((left -= 1) === 0) throw down;
        return 0;
      });
      await trip(keyed, "a");
      now.mockRestore();
      expect(keyed.for("a")).toBe(breaker);
    }
  });
  expect(new Set(unhandled)).toEqual(new Set([down]));
});

it("gives the same breaker for the same key", () => {
  const { keyed } = make();
  expect(keyed.for("a")).toBe(keyed.for("a"));
  expect(keyed.for("b")).not.toBe(keyed.for("a"));
});

it("forgets the closed breaker that has not been used for longest", async () => {
  const { keyed } = make({ maxKeys: 3 });
  const [a, b, c] = ["a", "b", "c"].map((key) => keyed.for(key));
  await keyed.run("a", () => {});
  keyed.for("d");
  expect(keyed.stats()).toEqual({ keys: 3, tripped: 0, evicted: 1 });
  expect([keyed.for("a") === a, keyed.for("c") === c]).toEqual([true, true]);
  expect(keyed.for("b")).not.toBe(b);
});

it("forgets none with calls under way while there is an idle one", async () => {
  const { keyed } = make({ maxKeys: 2 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const call = keyed.run("busy", () => promise);
  const busy = keyed.for("busy");
  keyed.for("idle");
  keyed.for("new");
  expect([keyed.for("busy") === busy, keyed.stats().evicted]).toEqual([true, 1]);
  resolve();
  await call;
});

it("keeps open breakers through a flood of other keys, and half-open ones", async () => {
  const { clock, keyed } = make({ maxKeys: 10 });
  await trip(keyed, "mail");
  for (let user = 0; user < 1_000; user += 1) await keyed.run(`origin-${user}`, () => {});
  await expect(keyed.run("mail", () => 1)).rejects.toThrow(CircuitOpenError);
  await clock.advance(1_000);
  for (let user = 0; user < 1_000; user += 1) await keyed.run(`origin-${user}`, () => {});
  expect(keyed.for("mail").state).toBe("half-open");
  expect(keyed.stats()).toMatchObject({ keys: 10, tripped: 1 });
});

it("stays within maxKeys if all are open, and forgets the one that has not been used for longest", async () => {
  const { clock, keyed } = make({ maxKeys: 2 });
  await trip(keyed, "first");
  await clock.advance(1_000);
  await trip(keyed, "second");
  await trip(keyed, "first"); // its trial failed: it has opened anew
  await trip(keyed, "third");
  expect(["first", "third"].map((key) => keyed.for(key).state)).toEqual(["open", "open"]);
  expect(keyed.stats()).toEqual({ keys: 2, tripped: 2, evicted: 1 });
  expect(keyed.for("second").state).toBe("closed");
});

it("tells changes with their key, and none of a breaker that it has forgotten", async () => {
  const changes: string[] = [];
  const { clock, keyed } = make({
    maxKeys: 1,
    onStateChange: ({ key, from, to }) => changes.push(`${key}: ${from} > ${to}`),
  });
  const { promise, reject } = Promise.withResolvers<void>();
  const late = expect(keyed.run("a", () => promise)).rejects.toBe(down);
  await trip(keyed, "b");
  await clock.advance(1_000);
  await keyed.run("b", () => {});
  reject(down);
  await late;
  expect(changes).toEqual(["b: closed > open", "b: open > half-open", "b: half-open > closed"]);
  expect(keyed.stats()).toEqual({ keys: 1, tripped: 0, evicted: 1 });
});

it("hears nothing of a breaker that it has forgotten, though it has made another for its key", async () => {
  const changes: string[] = [];
  const { keyed } = make({ maxKeys: 1, onStateChange: ({ key, to }) => changes.push(`${key}: ${to}`) });
  const { promise, reject } = Promise.withResolvers<void>();
  const late = expect(keyed.run("a", () => promise)).rejects.toBe(down);
  keyed.for("b");
  const second = keyed.for("a");
  reject(down);
  await late;
  expect([changes, keyed.stats().tripped]).toEqual([[], 0]);
  expect(keyed.for("a")).toBe(second);
});

it("makes each breaker by the options it was made with, whatever becomes of the object", async () => {
  const options = { failures: 1 };
  const keyed = new KeyedCircuitBreaker(options);
  options.failures = 0;
  await trip(keyed, "mail");
  expect(keyed.for("mail").state).toBe("open");
});

it("forgets a key that has not been used for long, but none that is in use or still open", async () => {
  const { clock, keyed } = make({ idleMs: 5_000, cooldownMs: 20_000 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const call = keyed.run("busy", () => promise);
  for (const key of ["idle", "isolated", "last"]) keyed.for(key);
  const handle = isolate(keyed.for("isolated"));
  await trip(keyed, "open");
  await clock.advance(5_000);
  for (let other = 0; other < 6; other += 1) await keyed.run("other", () => {});
  expect(keyed.stats()).toEqual({ keys: 4, tripped: 1, evicted: 0 }); // busy, isolated, open, other
  resolve();
  await call;
  handle.release();
  await clock.advance(15_000);
  for (let other = 0; other < 6; other += 1) await keyed.run("other", () => {});
  expect(keyed.for("open").state).toBe("half-open"); // though nobody has asked for it since it opened
  await clock.advance(5_000);
  for (let other = 0; other < 6; other += 1) await keyed.run("other", () => {});
  expect(keyed.stats()).toEqual({ keys: 1, tripped: 0, evicted: 0 });
});

it("lets a flood of keys push out neither one that is isolated nor one that is open, while there is any other", async () => {
  const { keyed } = make({ maxKeys: 3 });
  const handle = isolate(keyed.for("isolated"));
  await trip(keyed, "open");
  for (let key = 0; key < 100; key += 1) await keyed.run(`${key}`, () => {});
  expect([keyed.for("isolated").mode, keyed.for("open").state]).toEqual(["isolated", "open"]);
  handle.release();
});

it("remembers every key if maxKeys is Infinity", () => {
  const { keyed } = make({ maxKeys: Infinity });
  for (let key = 0; key < 20_000; key += 1) keyed.for(`${key}`);
  expect(keyed.stats()).toMatchObject({ keys: 20_000, evicted: 0 });
});

it("refuses bad options when it is made", () => {
  for (const bad of [{ maxKeys: 0 }, { idleMs: 0 }, { failures: 0 }, { cooldownMs: -1 }])
    expect(() => new KeyedCircuitBreaker(bad)).toThrow(RangeError);
  expect(() => new KeyedCircuitBreaker({ onStateChange: 1 as never })).toThrow(TypeError);
});

it("takes any value as a key, and tells them apart as a Map does", async () => {
  const [tenant, other] = [{ id: 1 }, { id: 1 }];
  const changed: unknown[] = [];
  const keyed = new KeyedCircuitBreaker<unknown>({ failures: 1, onStateChange: ({ key }) => changed.push(key) });
  for (const key of [tenant, undefined])
    await expect(keyed.run(key, () => Promise.reject(new Error("no")))).rejects.toThrow();
  expect([tenant, other, undefined, Number.NaN].map((key) => keyed.for(key).state)).toEqual([
    "open",
    "closed",
    "open",
    "closed",
  ]);
  expect(keyed.for(Number.NaN)).toBe(keyed.for(Number.NaN));
  expect(changed).toEqual([tenant, undefined]);
});

it("makes room by forgetting the key undefined, too", () => {
  const keyed = new KeyedCircuitBreaker<unknown>({ maxKeys: 1 });
  const breaker = keyed.for(undefined);
  keyed.for("a");
  expect(keyed.stats()).toMatchObject({ keys: 1, evicted: 1 });
  expect(keyed.for(undefined)).not.toBe(breaker);
});

it("remembers and forgets as it says under any plan of calls and pauses", () => {
  const call = fc.record({
    key: fc.constantFrom("a", "b", "c", "d", "e"),
    verb: fc.constantFrom("succeed", "fail", "hang"),
  });
  const step = fc.oneof({ weight: 5, arbitrary: call }, { weight: 1, arbitrary: fc.constant("pause" as const) });
  const plans = fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 500 });
});

interface Entry {
  readonly key: string;
  readonly breaker: CircuitBreaker;
  usedAt: number;
}

async function play(
  maxKeys: number,
  plan: readonly ("pause" | { readonly key: string; readonly verb: string })[],
): Promise<void> {
  const { clock, keyed } = make({ maxKeys, maxTrialMs: 100 });
  let entries: Entry[] = [];
  for (const [now, step] of plan.entries()) {
    if (step === "pause") {
      await clock.advance(500);
      continue;
    }
    const { key, verb } = step;
    const known = entries.find((entry) => entry.key === key);
    if (known === undefined && entries.length === maxKeys)
      entries = entries.filter((entry) => entry !== victim(entries));
    const breaker = keyed.for(key);
    if (known === undefined) entries.push({ key, breaker, usedAt: now });
    else expect(breaker).toBe(known.breaker);
    if (verb === "hang") void keyed.run(key, () => new Promise(() => {})).catch(() => {});
    else await keyed.run(key, () => (verb === "fail" ? Promise.reject(down) : 1)).catch(() => {});
    const entry = entries.find((each) => each.breaker === breaker);
    if (entry !== undefined) entry.usedAt = now;
    const tripped = entries.filter((each) => each.breaker.state !== "closed").length;
    expect(keyed.stats()).toMatchObject({ keys: entries.length, tripped });
  }
}

/** Who must go for a newcomer. */
function victim(entries: readonly Entry[]): Entry | undefined {
  const byUse = entries.toSorted((a, b) => a.usedAt - b.usedAt);
  const closed = byUse.filter(({ breaker }) => breaker.state === "closed");
  return closed.find(({ breaker }) => breaker.running === 0) ?? closed[0] ?? byUse[0];
}
