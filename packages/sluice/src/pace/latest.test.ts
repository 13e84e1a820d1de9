import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { ClearedError, SupersededError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { latest, type LatestOptions } from "./latest.ts";

const subject: AbortSubject = {
  name: "latest",
  lacks: { timeoutMs: "a signal with a deadline is one" },
  open() {
    const calls: { end(): void; pending(): boolean }[] = [];
    return {
      async call({ signal }) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const call = latest(() => promise, { signal });
        calls.push({ end: resolve, pending: () => call.pending() });
        await call();
      },
      satisfy: () => calls.find((call) => call.pending())?.end(),
      state: () => ({ running: calls.filter((call) => call.pending()).length }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

interface Made {
  readonly clock: VirtualClock;
  /** What each run saw, in the order of the events. */
  readonly log: string[];
  readonly ask: ReturnType<typeof latest<unknown, [string, number], string>>;
}

/** Runs that take so long, and say when they begin, end and hear of their abort. */
function make(options: LatestOptions = {}): Made {
  const clock = new VirtualClock();
  const log: string[] = [];
  const ask = latest(({ signal }, text: string, tookMs: number): Promise<string> => {
    log.push(`${clock.now()} begin ${text}`);
    signal.addEventListener("abort", () => log.push(`${clock.now()} abort ${text}: ${(signal.reason as Error).name}`));
    return new Promise((resolve) => void clock.setTimer(tookMs, { onTimer: () => resolve(text) }));
  }, options);
  return { clock, log, ask };
}

it("C134: delivers the newest result alone, and aborts the older run when the newer one begins", async () => {
  const { clock, log, ask } = make();
  const slow = expect(ask("A", 300)).rejects.toThrow(SupersededError);
  await clock.advance(60);
  const quick = ask("B", 20);
  await slow; // at once, though its run goes on
  expect(clock.now()).toBe(60);
  await clock.runToIdle();
  expect(await quick).toBe("B");
  expect(log).toEqual(["0 begin A", "60 abort A: SupersededError", "60 begin B"]);
});

it("gives who is superseded the newest result, if told so", async () => {
  const { clock, ask } = make({ superseded: "join" });
  const calls = [ask("A", 300), ask("B", 100), ask("C", 20)];
  await clock.runToIdle();
  expect(await Promise.all(calls)).toEqual(["C", "C", "C"]);
});

it("waits for the run that goes on, and then runs only the latest call, if told so", async () => {
  const { clock, log, ask } = make({ overlap: "wait" });
  const first = ask("A", 100);
  const second = expect(ask("B", 100)).rejects.toThrow(SupersededError);
  const third = ask("C", 50);
  await second;
  expect(ask.pending()).toBe(true);
  await clock.runToIdle();
  expect([await first, await third, ask.pending()]).toEqual(["A", "C", false]);
  expect(log).toEqual(["0 begin A", "100 begin C"]);
});

it("lets those who wait join the one that takes their place, if told so", async () => {
  const { clock, ask } = make({ overlap: "wait", superseded: "join" });
  const calls = [ask("A", 100), ask("B", 100), ask("C", 50)];
  await clock.runToIdle();
  expect(await Promise.all(calls)).toEqual(["A", "C", "C"]);
});

it("hands any number of callers on from call to call", async () => {
  const runs: (() => void)[] = [];
  const fn = (): Promise<string> => new Promise((resolve) => runs.push(() => resolve("same")));
  const ask = latest(fn, { overlap: "wait", superseded: "join" });
  const calls = Array.from({ length: 50_000 }, () => ask());
  runs[0]?.();
  await turn();
  runs[1]?.();
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["same"]));
  expect([runs.length, ask.pending()]).toEqual([2, false]);
});

it("goes on after a run that fails, whether it throws or rejects", async () => {
  const ask = latest((_, how: string): Promise<string> | string => {
    if (how === "throw") throw new Error(how);
    return how === "reject" ? Promise.reject(new Error(how)) : how;
  });
  await expect(ask("throw")).rejects.toThrow("throw");
  await expect(ask("reject")).rejects.toThrow("reject");
  expect([await ask("well"), ask.pending()]).toEqual(["well", false]);
});

it("runs who waits also after a run that fails", async () => {
  const ends: ((error: Error) => void)[] = [];
  const ask = latest((_, id: number) => (id === 1 ? new Promise<number>((_end, fail) => ends.push(fail)) : id), {
    overlap: "wait",
  });
  const first = expect(ask(1)).rejects.toThrow("down");
  const second = ask(2);
  ends[0]?.(new Error("down"));
  await first;
  expect(await second).toBe(2);
});

it("hears nothing of the late end of a run that was superseded", async () => {
  const { clock, ask } = make();
  const old = expect(ask("A", 50)).rejects.toThrow(SupersededError);
  const next = ask("B", 100);
  await old;
  await clock.advance(50);
  expect(ask.pending()).toBe(true);
  await clock.advance(50);
  expect(await next).toBe("B");
});

it("lets the newest of all win when one who hears of the abort calls again", async () => {
  const begun: string[] = [];
  const nested: Promise<string>[] = [];
  const ask = latest(({ signal }, text: string): Promise<string> | string => {
    begun.push(text);
    if (text !== "A") return text;
    signal.addEventListener("abort", () => nested.push(ask("C")));
    return new Promise<string>(() => {});
  });
  const [first, second] = [ask("A"), ask("B")].map((call) => expect(call).rejects.toThrow(SupersededError));
  await Promise.all([first, second]);
  expect([begun, await nested[0]]).toEqual([["A", "C"], "C"]);
});

it("rejects who is run and who waits when it is cancelled or disposed of, and aborts the run", async () => {
  const { clock, log, ask } = make({ overlap: "wait" });
  const calls = [ask("A", 100), ask("B", 100)].map((call) => expect(call).rejects.toThrow(ClearedError));
  {
    using _ = ask;
  }
  await Promise.all(calls);
  expect([log, ask.pending()]).toEqual([["0 begin A", "0 abort A: ClearedError"], false]);
  const next = ask("C", 10);
  await clock.advance(10);
  expect(await next).toBe("C");
});

it("passes the abort of its signal on, with the reason, to the run and to all who call", async () => {
  const life = new AbortController();
  const gone = new Error("unmounted");
  const { log, ask } = make({ signal: life.signal, overlap: "wait" });
  const calls = [ask("A", 100), ask("B", 100)].map((call) => expect(call).rejects.toBe(gone));
  expect(getEventListeners(life.signal, "abort")).toHaveLength(1);
  life.abort(gone);
  await Promise.all([...calls, expect(ask("C", 1)).rejects.toBe(gone)]);
  expect([log, getEventListeners(life.signal, "abort").length]).toEqual([["0 begin A", "0 abort A: Error"], 0]);
});

it("leaves no listener on its signal when nothing is run", async () => {
  const life = new AbortController();
  const { clock, ask } = make({ signal: life.signal });
  const calls = [expect(ask("A", 10)).rejects.toThrow(SupersededError), ask("B", 10)];
  await clock.runToIdle();
  await Promise.all(calls);
  expect(getEventListeners(life.signal, "abort")).toHaveLength(0);
});

it("keeps this, and refuses bad options", async () => {
  const page = {
    name: "page",
    show: latest(function (this: { readonly name: string }, _context, id: number) {
      return `${this.name} ${id}`;
    }),
  };
  expect(await page.show(7)).toBe("page 7");
  expect(() => latest(5 as never)).toThrow("fn must be a function, got number");
  expect(() => latest(() => 1, { overlap: "queue" as "wait" })).toThrow(RangeError);
  expect(() => latest(() => 1, { superseded: "drop" as "join" })).toThrow(RangeError);
  expect(() => latest(() => 1, { signal: {} as AbortSignal })).toThrow(TypeError);
});
