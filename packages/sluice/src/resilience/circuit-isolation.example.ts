// A payment provider is taken out of use while its keys are changed. At the same time somebody stops it for the budget:
// neither has to know of the other, and it comes back when both are done.
import { CircuitBreaker, CircuitOpenError, isolate } from "sluice";

const breaker = new CircuitBreaker();

async function pay(): Promise<string> {
  try {
    return await breaker.run(() => "paid");
  } catch (error) {
    if (!(error instanceof CircuitOpenError)) throw error;
    return `not tried, come back in ${error.retryAfterMs} ms`;
  }
}

const budget = isolate(breaker);
{
  using _ = isolate(breaker);
  console.log("new keys, and the budget is spent:", await pay());
}
console.log("the budget is spent:", await pay());

budget.release();
budget.release(); // once is enough, and twice no harm
console.log("a new month:", await pay());

// The state is another matter: what was closed meanwhile is closed, and what was open is open.
breaker.open(30_000);
{
  using _ = isolate(breaker);
  console.log(breaker.mode, breaker.state);
}
console.log(breaker.mode, breaker.state);

// Prints:
// new keys, and the budget is spent: not tried, come back in Infinity ms
// the budget is spent: not tried, come back in Infinity ms
// a new month: paid
// isolated open
// normal open
