// What to make of an error, as retries and breakers do, and how to add what only this service knows.
import { classifyError, classifyOutcome, CircuitBreaker, retry, type CircuitOutcome } from "sluice";

const errors = {
  busy: Object.assign(new Error("busy"), { status: 503 }),
  unknown: Object.assign(new Error("no such user"), { status: 404 }),
  reset: new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) }),
  left: new DOMException("the user has left", "AbortError"),
  bug: new TypeError("x is undefined"),
};

for (const [name, reason] of Object.entries(errors))
  console.log(`${name}: ${classifyError(reason)}, ${classifyOutcome({ status: "rejected", reason })}`);

/** This service says 500 when it is being deployed, and 200 with an error in it when it has none of our data. */
const isDeploying = (error: unknown): boolean => (error as { status?: unknown }).status === 500;
const again = retry({
  retries: 3,
  baseMs: 1,
  classify: (error) => (isDeploying(error) ? "retry" : classifyError(error)),
});
const breaker = new CircuitBreaker({
  failures: 1,
  classify: (outcome: CircuitOutcome) => {
    const isEmpty = outcome.status === "fulfilled" && outcome.value === "error: no data";
    return isEmpty ? "failure" : classifyOutcome(outcome);
  },
});

const answers = ["error: no data"];
const answer = await again.run(({ attempt }) => {
  if (attempt < 3) throw Object.assign(new Error("deploying"), { status: 500 });
  return breaker.run(() => answers.shift());
});
console.log(`${answer}, so that it is ${breaker.state}`);

// Prints:
// busy: retry, failure
// unknown: stop, ignore
// reset: retry, failure
// left: stop, ignore
// bug: stop, failure
// error: no data, so that it is open
