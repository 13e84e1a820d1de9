// Four policies around a call on which nothing fails: a limit on time, a retry, a breaker and a bulkhead.
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
import OpossumBreaker from "opossum";
import pLimit from "p-limit";
import pRetry from "p-retry";
import { CircuitBreaker, compose, retry, Semaphore, timeout } from "sluice";
import { compare } from "../harness.ts";

const LIMIT_MS = 30_000;
const task = (): Promise<number> => Promise.resolve(1);

const ours = compose(timeout(LIMIT_MS), retry({ retries: 3 }), new CircuitBreaker(), new Semaphore(64));
const cockatiel = wrap(
  cockatielTimeout(LIMIT_MS, TimeoutStrategy.Aggressive),
  cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() }),
  circuitBreaker(handleAll, { halfOpenAfter: 30_000, breaker: new ConsecutiveBreaker(5) }),
  bulkhead(64, 1e6),
);
const opossum = new OpossumBreaker(task, { timeout: LIMIT_MS });
const slots = pLimit(64);

await compare("compose", 200_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) await ours.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await task();
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await cockatiel.execute(task);
  },
  async "p-retry + p-limit + opossum"(ops) {
    for (let i = 0; i < ops; i += 1) await pRetry(() => slots(() => opossum.fire()), { retries: 3 });
  },
});
opossum.shutdown();
