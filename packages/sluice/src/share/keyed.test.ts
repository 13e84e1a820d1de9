import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Policy } from "../policy.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Keyed } from "./keyed.ts";

const abortSubject = {
  name: "Keyed.run",
  open(clock: VirtualClock) {
    const keyed = new Keyed(() => new Semaphore(1, { clock }));
    const hold = Promise.withResolvers<void>();
    void keyed.run("key", () => hold.promise);
    return {
      call: (options: object) => keyed.run("key", () => {}, options),
      satisfy: () => hold.resolve(),
      state: () => ({ keys: keyed.size }),
    };
  },
};

for (const { title, run } of abortCases(abortSubject)) it(title, run);

it("limits each key by itself", async () => {
  const keyed = new Keyed<string>(() => new Semaphore(1));
  const running: string[] = [];
  const ends: (() => void)[] = [];
  const calls = ["a", "a", "b"].map((key) =>
    keyed.run(key, () => {
      running.push(key);
      return new Promise<void>((resolve) => void ends.push(resolve));
    }),
  );
  expect(running).toEqual(["a", "b"]);
  expect(keyed.stats()).toEqual({ keys: 2, calls: 3 });
  ends.shift()?.();
  await calls[0];
  await turn();
  expect(running).toEqual(["a", "b", "a"]);
  for (const end of ends) end();
  await Promise.all(calls);
  expect(keyed.stats()).toEqual({ keys: 0, calls: 0 });
});

it("keeps one policy for a key though make comes back for that key", async () => {
  const ends: (() => void)[] = [];
  const hold = (): Promise<void> => new Promise((resolve) => void ends.push(resolve));
  let made = 0;
  let within: Promise<void> | undefined;
  const keyed: Keyed<string> = new Keyed((key) => {
    made += 1;
    if (made === 1) within = keyed.run(key, hold);
    return new Semaphore(1);
  });
  const call = keyed.run("key", hold);
  expect([keyed.stats(), ends.length]).toEqual([{ keys: 1, calls: 2 }, 1]);
  ends[0]?.();
  await within;
  await turn();
  expect([keyed.has("key"), ends.length]).toEqual([true, 2]);
  ends[1]?.();
  await call;
  expect(keyed.stats()).toEqual({ keys: 0, calls: 0 });
});

it("C014: a body that asks for the key it holds is refused in time, and the key is free afterwards", async () => {
  const clock = new VirtualClock();
  const keyed = new Keyed<string>(() => new Semaphore(1, { clock }));
  const outer = keyed.run("key", async () => {
    await expect(keyed.run("key", () => {}, { timeoutMs: 50 })).rejects.toMatchObject({ code: "TIMEOUT" });
    return "done";
  });
  await clock.advance(50);
  await expect(outer).resolves.toBe("done");
  expect(keyed.has("key")).toBe(false);
  await expect(keyed.run("key", () => "free")).resolves.toBe("free");
});

it("C020: who waits anew is granted its turn, though the one chosen before it aborts, and nothing stays behind", async () => {
  const keyed = new Keyed<string>(() => new Semaphore(1));
  const hold = Promise.withResolvers<void>();
  const holder = keyed.run("k", () => hold.promise);
  const b = new AbortController();
  const second = keyed.run("k", () => "b", { signal: b.signal });
  second.catch(() => {});
  hold.resolve();
  await Promise.resolve(); // the holder has ended, and b is chosen but has not resumed
  const third = keyed.run("k", () => "c");
  b.abort(new Error("gone"));
  await holder;
  await expect(third).resolves.toBe("c");
  await Promise.allSettled([second]);
  expect(keyed.size).toBe(0);
});

it("C042: runs each function in the async context of whoever called", async () => {
  const { AsyncLocalStorage } = await import("node:async_hooks");
  const context = new AsyncLocalStorage<number>();
  const keyed = new Keyed<string>(() => new Semaphore(1));
  const seen = [0, 1, 2].map((id) =>
    context.run(id, () =>
      keyed.run("key", async () => {
        await turn();
        return context.getStore();
      }),
    ),
  );
  expect(await Promise.all(seen)).toEqual([0, 1, 2]);
});

it("makes a policy anew for a key that had gone idle, and one for all calls at a time", async () => {
  const made: string[] = [];
  const keyed = new Keyed<string>((key) => {
    made.push(key);
    return new Semaphore(1);
  });
  await Promise.all([keyed.run("a", () => {}), keyed.run("a", () => {})]);
  await keyed.run("a", () => {});
  expect(made).toEqual(["a", "a"]);
});

it("rejects with what make throws, and forgets the key", async () => {
  const keyed = new Keyed<string>(() => {
    throw new Error("no policy");
  });
  await expect(keyed.run("a", () => {})).rejects.toThrow("no policy");
  expect(keyed.stats()).toEqual({ keys: 0, calls: 0 });
});

it("rejects and forgets the key when a policy throws where it should reject", async () => {
  const broken: Policy = {
    run() {
      throw new Error("broken");
    },
  };
  const keyed = new Keyed<string>(() => broken);
  await expect(keyed.run("a", () => {})).rejects.toThrow("broken");
  expect(keyed.stats()).toEqual({ keys: 0, calls: 0 });
});

it("refuses what makes nothing", () => {
  expect(() => new Keyed("a" as never)).toThrow(TypeError);
});

it("keeps a key exactly while somebody uses it, one at a time in each, under any plan of calls, ends and aborts", () => {
  const step = fc.record({ act: fc.constantFrom("run", "run", "end", "abort", "settle"), key: fc.nat({ max: 2 }) });
  return fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), play), { numRuns: 300 });
});

async function play(plan: readonly { readonly act: string; readonly key: number }[]): Promise<void> {
  const keyed = new Keyed<number>(() => new Semaphore(1));
  const under = new Map<number, { end(): void; abort(): void }[]>();
  const running = new Map<number, number>();
  const calls: Promise<unknown>[] = [];
  for (const { act, key } of plan) {
    const mine = under.get(key) ?? [];
    under.set(key, mine);
    if (act === "run") {
      const controller = new AbortController();
      const hold = Promise.withResolvers<void>();
      const call = { end: () => hold.resolve(), abort: () => controller.abort() };
      mine.push(call);
      const work = async (): Promise<void> => {
        running.set(key, (running.get(key) ?? 0) + 1);
        expect(running.get(key)).toBe(1);
        await hold.promise;
        running.set(key, 0);
      };
      const done = keyed.run(key, work, controller).finally(() => mine.splice(mine.indexOf(call), 1));
      calls.push(done.catch(() => {}));
    } else if (act === "end") mine[0]?.end();
    else if (act === "abort") mine.at(-1)?.abort();
    else {
      await turn();
      for (const [each, left] of under) expect([each, keyed.has(each)]).toEqual([each, left.length > 0]);
    }
  }
  for (const mine of under.values()) for (const call of mine) call.end();
  await Promise.all(calls);
  expect(keyed.stats()).toEqual({ keys: 0, calls: 0 });
}
