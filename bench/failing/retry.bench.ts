// The path on which nothing fails, which nearly all calls take. `floor` is the call itself, awaited; `by hand` the least
// that could try again, knowing neither classes of errors nor waits, budgets, aborts or deadlines.
import { ExponentialBackoff, handleAll, retry as cockatielRetry } from "cockatiel";
import { retry as esRetry } from "es-toolkit";
import pRetry from "p-retry";
import { retry, RetryBudget } from "sluice";
import { compare } from "../harness.ts";

const call = async (): Promise<number> => 1; // oxlint-disable-line typescript/require-await -- as what is tried again mostly is
const policy = retry({ retries: 3 });
const cockatiel = cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() });

async function byHand<T>(fn: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fn();
    } catch (error) {
      if (attempt > 3) throw error;
    }
  }
}

await compare("retry", 300_000, {
  async retry(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(call);
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await cockatiel.execute(call);
  },
  async "p-retry"(ops) {
    for (let i = 0; i < ops; i += 1) await pRetry(call, { retries: 3 });
  },
  async "es-toolkit"(ops) {
    for (let i = 0; i < ops; i += 1) await esRetry(call, { retries: 3 });
  },
  async "by hand"(ops) {
    for (let i = 0; i < ops; i += 1) await byHand(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await call();
  },
});

const budgeted = retry({ retries: 3, budget: new RetryBudget() });

await compare("retry-budget", 300_000, {
  async retry(ops) {
    for (let i = 0; i < ops; i += 1) await budgeted.run(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await call();
  },
});

const { signal } = new AbortController();

// One signal that outlives all calls, as that of a server that is to stop.
await compare("retry-signal", 100_000, {
  async retry(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(call, { signal });
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await cockatiel.execute(call, signal);
  },
  async "p-retry"(ops) {
    for (let i = 0; i < ops; i += 1) await pRetry(call, { retries: 3, signal });
  },
  async "es-toolkit"(ops) {
    for (let i = 0; i < ops; i += 1) await esRetry(call, { retries: 3, signal });
  },
});
