// The paths on which nothing fails.
import { circuitBreaker, ConsecutiveBreaker, ExponentialBackoff, handleAll, retry as cockatielRetry } from "cockatiel";
import OpossumBreaker from "opossum";
import pRetry from "p-retry";
import { CircuitBreaker, retry } from "sluice";
import { compare } from "../harness.ts";

const task = (): Promise<number> => Promise.resolve(1);

const breaker = new CircuitBreaker({ failures: 5 });
const theirs = circuitBreaker(handleAll, { halfOpenAfter: 30_000, breaker: new ConsecutiveBreaker(5) });
const opossum = new OpossumBreaker(task, { timeout: false });

await compare("circuit-breaker", 100_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) await breaker.run(task);
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await theirs.execute(task);
  },
  async opossum(ops) {
    for (let i = 0; i < ops; i += 1) await opossum.fire();
  },
});
opossum.shutdown();

const policy = retry({ retries: 3 });
const theirRetry = cockatielRetry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() });

await compare("retry", 100_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(task);
  },
  async "p-retry"(ops) {
    for (let i = 0; i < ops; i += 1) await pRetry(task, { retries: 3 });
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await theirRetry.execute(task);
  },
});
