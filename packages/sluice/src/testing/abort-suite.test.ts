import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { TimeoutError } from "../errors.ts";
import { checkWait } from "../internal/check.ts";
import type { WaitOptions } from "../policy.ts";
import type { Permit } from "../sync/permit.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { type AbortSubject, abortCases } from "./abort-suite.ts";
import type { VirtualClock } from "./virtual-clock.ts";

type Acquire = (options: WaitOptions) => Promise<Permit>;

/** `Semaphore.acquire`, or what `change` makes of it. */
function acquiring(name: string, change: (sem: Semaphore, clock: VirtualClock) => Acquire): AbortSubject {
  return {
    name,
    open(clock) {
      const sem = new Semaphore(1, { clock });
      const held = [sem.tryAcquire()];
      const acquire = change(sem, clock);
      return {
        call(options) {
          const granted = acquire(options);
          granted.then(
            (permit) => held.push(permit),
            () => {},
          );
          return granted;
        },
        satisfy: () => held.shift()?.release(),
        state: () => ({ available: sem.available, waiting: sem.waiting }),
        giveBack: () => held.shift()?.release(),
      };
    },
  };
}

const semaphore = acquiring("Semaphore.acquire", (sem) => (options) => sem.acquire(options));

const subjects: readonly AbortSubject[] = [
  semaphore,
  {
    name: "a call that goes straight to fn",
    lacks: { waiting: "it calls fn at once", timeoutMs: "it never waits" },
    open() {
      const running: (() => void)[] = [];
      return {
        async call({ signal }) {
          checkWait({ signal });
          await new Promise<void>((resolve) => running.push(resolve));
        },
        satisfy: () => running.shift()?.(),
        state: () => ({ running: running.length }),
      };
    },
  },
];

for (const { title, run } of subjects.flatMap(abortCases)) it(title, run);

const none = (): void => {};

/** By what is wrong with it: which case must notice, and how to get it wrong. */
const broken: Readonly<Record<string, [notices: string, change: (sem: Semaphore, clock: VirtualClock) => Acquire]>> = {
  "goes ahead with an aborted signal": [
    "aborted already",
    (sem) => (options) => sem.acquire(options.signal?.aborted === true ? {} : options),
  ],
  "takes a permit though the signal is aborted": [
    "aborted already",
    (sem) => (options) => {
      if (options.signal?.aborted === true) sem.tryAcquire();
      return sem.acquire(options);
    },
  ],
  "wraps the reason of an abort": [
    "mid-wait",
    (sem) => async (options) => {
      checkWait(options);
      return sem.acquire(options).catch((cause: unknown) => {
        throw options.signal?.aborted === true ? new Error("aborted", { cause }) : cause;
      });
    },
  ],
  "puts an error in place of a reason that is null": [
    "mid-wait",
    (sem) => async (options) => {
      checkWait(options);
      return sem.acquire(options).catch((reason: unknown) => {
        throw reason ?? new Error("aborted");
      });
    },
  ],
  "hears an abort only before it waits": [
    "mid-wait",
    (sem) => async (options) => {
      checkWait(options);
      return sem.acquire({ timeoutMs: options.timeoutMs });
    },
  ],
  "stays in line after an abort": [
    "mid-wait",
    (sem) => async (options) => {
      checkWait(options);
      const { signal, timeoutMs } = options;
      const aborted = new Promise<never>((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      return Promise.race([sem.acquire({ timeoutMs }), aborted]);
    },
  ],
  "leaves the line a microtask after the abort": [
    "mid-wait",
    (sem) => (options) => {
      const { signal, timeoutMs } = options;
      const relay = new AbortController();
      if (signal?.aborted === true) relay.abort(signal.reason);
      signal?.addEventListener("abort", () => queueMicrotask(() => relay.abort(signal.reason)), { once: true });
      return sem.acquire({ signal: relay.signal, timeoutMs });
    },
  ],
  "leaves a listener after success": [
    "has settled",
    (sem) => (options) => {
      options.signal?.addEventListener("abort", none, { once: true });
      return sem.acquire(options);
    },
  ],
  "leaves a listener after an abort": [
    "mid-wait",
    (sem) => async (options) => {
      options.signal?.addEventListener("abort", none);
      const permit = await sem.acquire(options);
      options.signal?.removeEventListener("abort", none);
      return permit;
    },
  ],
  "leaves a listener after a timeout": [
    "after their timeout",
    (sem) => async (options) => {
      try {
        return await sem.acquire(options);
      } catch (error) {
        if (error instanceof TimeoutError) options.signal?.addEventListener("abort", none);
        throw error;
      }
    },
  ],
  "listens once for each call": [
    "one listener for a thousand",
    (sem) => async (options) => {
      const own = (): unknown => options; // another function for each call
      options.signal?.addEventListener("abort", own);
      return sem.acquire(options).finally(() => options.signal?.removeEventListener("abort", own));
    },
  ],
  "gives the permit back at a late abort": [
    "has settled",
    (sem) => async (options) => {
      const permit = await sem.acquire(options);
      // Through a signal of its own: a listener would give it away.
      if (options.signal !== undefined)
        AbortSignal.any([options.signal]).addEventListener("abort", () => permit.release());
      return permit;
    },
  ],
  "loses the permit when the abort comes with the grant": [
    "in the turn of the grant",
    (sem) => async (options) => {
      const permit = await sem.acquire(options);
      options.signal?.throwIfAborted();
      return permit;
    },
  ],
  "waits when timeoutMs is 0": [
    "tries once",
    (sem) =>
      ({ signal, timeoutMs }) =>
        sem.acquire({ signal, timeoutMs: timeoutMs === 0 ? undefined : timeoutMs }),
  ],
  "doesn't even try when timeoutMs is 0": [
    "tries once",
    (sem) => async (options) => {
      if (options.timeoutMs === 0) throw new TimeoutError(0);
      return sem.acquire(options);
    },
  ],
  "sets a timer when timeoutMs is 0": [
    "tries once",
    (sem, clock) => (options) => {
      if (options.timeoutMs === 0) clock.setTimer(0, { onTimer: none });
      return sem.acquire(options);
    },
  ],
  "waits a millisecond more than timeoutMs": [
    "with a TimeoutError",
    (sem) =>
      ({ signal, timeoutMs }) =>
        sem.acquire({ signal, timeoutMs: timeoutMs === 250 ? 251 : timeoutMs }),
  ],
  "waits a millisecond less than timeoutMs": [
    "with a TimeoutError",
    (sem) =>
      ({ signal, timeoutMs }) =>
        sem.acquire({ signal, timeoutMs: timeoutMs === 250 ? 249 : timeoutMs }),
  ],
  "calls a timeout an abort": [
    "with a TimeoutError",
    (sem) => async (options) =>
      sem.acquire(options).catch((error: unknown) => {
        throw error instanceof TimeoutError ? new DOMException("aborted", "AbortError") : error;
      }),
  ],
  "leaves its timer after success": [
    "has settled",
    (sem, clock) => async (options) => {
      const permit = await sem.acquire(options);
      if (options.timeoutMs !== undefined) clock.setTimer(options.timeoutMs, { onTimer: none });
      return permit;
    },
  ],
  "leaves a timer after a timeout": [
    "leaves no timer",
    (sem, clock) => async (options) => {
      try {
        return await sem.acquire(options);
      } catch (error) {
        if (error instanceof TimeoutError) clock.setTimer(1_000, { onTimer: none });
        throw error;
      }
    },
  ],
  "lets a timeout beat the abort of its turn": [
    "fall in one turn",
    (sem, clock) => async (options) => {
      const { signal, timeoutMs = 0 } = options;
      if (!(timeoutMs > 0)) return sem.acquire(options);
      return new Promise((resolve, reject) => {
        const timer = clock.setTimer(timeoutMs, { onTimer: () => reject(new TimeoutError(timeoutMs)) });
        sem
          .acquire({ signal, timeoutMs })
          .then(resolve, reject)
          .finally(() => timer.cancel())
          .catch(none);
      });
    },
  ],
  "throws for a bad signal": [
    "bad signal",
    (sem) => (options) => {
      checkWait({ signal: options.signal?.aborted === true ? undefined : options.signal });
      return sem.acquire(options);
    },
  ],
  "ignores a bad signal": [
    "bad signal",
    (sem) =>
      ({ signal, timeoutMs }) =>
        sem.acquire({ signal: signal instanceof AbortSignal ? signal : undefined, timeoutMs }),
  ],
  "throws for a bad timeoutMs": [
    "bad timeoutMs",
    (sem) => (options) => {
      checkWait({ timeoutMs: options.timeoutMs });
      return sem.acquire(options);
    },
  ],
  "ignores a bad timeoutMs": [
    "bad timeoutMs",
    (sem) =>
      ({ signal, timeoutMs = Infinity }) =>
        sem.acquire({ signal, timeoutMs: timeoutMs >= 0 ? timeoutMs : undefined }),
  ],
  "answers a bad timeoutMs with a permit from nowhere": [
    "bad timeoutMs",
    (sem) => async (options) => (options.timeoutMs === -1 ? new Semaphore(1).acquire() : sem.acquire(options)),
  ],
  "joins the line before it listens": [
    "throws",
    (sem) => async (options) => {
      const { signal } = options;
      if (signal === undefined || signal.aborted || typeof signal.addEventListener !== "function")
        return sem.acquire(options);
      const relay = new AbortController();
      const granted = sem.acquire({ ...options, signal: relay.signal });
      signal.addEventListener("abort", () => relay.abort(signal.reason), { once: true });
      return granted;
    },
  ],
};

it.each(Object.entries(broken))("notices what %s", async (name, [notices, change]) => {
  const failing: string[] = [];
  for (const { title, run } of abortCases(acquiring(name, change))) {
    const died = await run().then(
      () => false,
      () => true,
    );
    if (died) failing.push(title.slice(name.length));
  }
  expect(failing.join("\n")).toContain(notices);
});

it("notices a call that is meant to go on after an abort and doesn't", async () => {
  const cases = abortCases({ ...semaphore, name: "it", lacks: { waiting: "says who?" } });
  const found = cases.find(
    ({ title }) => title === "it leaves a call that is under way to the signal it hands on (says who?)",
  );
  await expect(found?.run()).rejects.toThrow("expected still to wait");
});

it("notices a timeout in what is meant to have none", async () => {
  const cases = abortCases({ ...semaphore, name: "it", lacks: { timeoutMs: "says who?" } });
  const found = cases.find(({ title }) => title.endsWith("(says who?)"));
  await expect(found?.run()).rejects.toThrow("expected still to wait");
});

it("runs under node:test as well", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "abort-suite-"));
  const file = join(folder, "any-runner.test.mjs");
  writeFileSync(
    file,
    `import { test } from "node:test";
     import { abortCases } from ${sourceOf("./abort-suite.ts")};
     import { Semaphore } from ${sourceOf("../sync/semaphore.ts")};
     const open = (clock) => {
       const sem = new Semaphore(1, { clock });
       const held = sem.tryAcquire();
       return {
         call: (options) => sem.run(() => {}, options),
         satisfy: () => held.release(),
         state: () => ({ available: sem.available, waiting: sem.waiting }),
       };
     };
     for (const { title, run } of abortCases({ name: "Semaphore.run", open })) test(title, run);`,
  );
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", file]);
    expect(stdout).toContain(`# pass ${abortCases(semaphore).length}\n# fail 0`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

function sourceOf(path: string): string {
  return JSON.stringify(new URL(path, import.meta.url).href);
}
