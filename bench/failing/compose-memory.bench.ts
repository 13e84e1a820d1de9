// What a call through four policies takes, and what is kept of it when it has ended, on the path on which nothing fails.
import {
  bulkhead,
  circuitBreaker,
  ConsecutiveBreaker,
  ExponentialBackoff,
  handleAll,
  retry as cockatielRetry,
  timeout as cockatielTimeout,
  TimeoutStrategy,
  wrap,
} from "cockatiel";
import { CircuitBreaker, compose, retry, Semaphore, timeout } from "sluice";
import { churn } from "../harness.ts";

const LIMIT_MS = 30_000;
const task = (): Promise<number> => Promise.resolve(1);

const ours = compose(timeout(LIMIT_MS), retry({ retries: 3 }), new CircuitBreaker(), new Semaphore(64));
const cockatiel = wrap(
  cockatielTimeout(LIMIT_MS, TimeoutStrategy.Aggressive),
  cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() }),
  circuitBreaker(handleAll, { halfOpenAfter: 30_000, breaker: new ConsecutiveBreaker(5) }),
  bulkhead(64, 1e6),
);

async function warm(call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < 20_000; i += 1) await call();
}

const calls = { sluice: () => ours.run(task), floor: task, cockatiel: () => cockatiel.execute(task) };
for (const call of Object.values(calls)) await warm(call); // what isn't compiled yet takes more

await churn("compose-memory", 1_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) await calls.sluice();
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await calls.floor();
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await calls.cockatiel();
  },
});
