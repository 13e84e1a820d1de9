// Work that ends long before its limit. The floor: a controller and a timer by hand, which abort but answer nobody.
import { timeout as cockatielTimeout, TimeoutStrategy } from "cockatiel";
import { withTimeout } from "es-toolkit";
import pTimeout from "p-timeout";
import { timeout } from "sluice";
import { compare } from "../harness.ts";

const LIMIT_MS = 30_000;
const task = (): Promise<number> => Promise.resolve(1);
const taskWithSignal = ({ signal }: { signal: AbortSignal }): Promise<boolean> => Promise.resolve(signal.aborted);

const policy = timeout(LIMIT_MS);
const aggressive = cockatielTimeout(LIMIT_MS, TimeoutStrategy.Aggressive);
const cooperative = cockatielTimeout(LIMIT_MS, TimeoutStrategy.Cooperative);

await compare("timeout", 50_000, {
  async timeout(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(task);
  },
  async "p-timeout"(ops) {
    for (let i = 0; i < ops; i += 1) await pTimeout(task(), { milliseconds: LIMIT_MS });
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await aggressive.execute(task);
  },
  async "es-toolkit"(ops) {
    for (let i = 0; i < ops; i += 1) await withTimeout(task, LIMIT_MS);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await byHand(task);
  },
});

// The work looks at its signal, and the caller has one of its own that outlives all calls.
const { signal } = new AbortController();

await compare("timeout-signal", 50_000, {
  async timeout(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(taskWithSignal, { signal });
  },
  async "p-timeout"(ops) {
    for (let i = 0; i < ops; i += 1) await pTimeout(taskWithSignal({ signal }), { milliseconds: LIMIT_MS, signal });
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await cooperative.execute(taskWithSignal, signal);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await byHandWithSignal(taskWithSignal, signal);
  },
});

async function byHand<T>(fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), LIMIT_MS);
  try {
    return await fn(controller.signal);
  } finally {
    clearTimeout(timer);
  }
}

async function byHandWithSignal<T>(fn: (context: AbortController) => Promise<T>, parent: AbortSignal): Promise<T> {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(parent.reason);
  parent.addEventListener("abort", onAbort);
  const timer = setTimeout(onAbort, LIMIT_MS);
  try {
    return await fn(controller);
  } finally {
    clearTimeout(timer);
    parent.removeEventListener("abort", onAbort);
  }
}
