/**
 * One call that several limiters have to allow, such as that of the user and that of the endpoint: charged to all of them
 * at one instant, or to none. For several limits of one thing, `allRules` makes one limiter.
 */
import type { Clock } from "../clock/clock.ts";
import { sleep } from "../clock/sleep.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimitedError, TimeoutError } from "../errors.ts";
import { checkWait } from "../internal/check.ts";
import type { WaitOptions } from "../policy.ts";
import type { KeyedRateLimiter } from "./keyed-rate-limiter.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import type { RateKey } from "./rate-table.ts";

/** What one of the limiters is to be charged. Several for one bucket are added up. */
export type RateCharge = Readonly<{
  /** Tokens. @default 1 */
  cost?: number | undefined;
}> &
  (Readonly<{ limiter: RateLimiter }> | Readonly<{ limiter: KeyedRateLimiter; key: RateKey }>);

export interface TakeAllOptions extends WaitOptions {
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** Takes from all, or, if one refuses, from none. Overtakes nobody who waits at one of them. */
export function tryTakeAll(charges: readonly RateCharge[]): boolean {
  const bill = add(charges);
  if (waitOf(bill) > 0) return false;
  for (const charge of bill) take(charge); // nothing comes between, so each is there
  return true;
}

/**
 * Resolves once it has taken from all at one instant. Nothing is held while it waits: so a call that waits for a slow
 * user keeps nobody else from the endpoint, but who comes with the right moment may go first. Each one that waits asks
 * again whenever its turn might have come.
 * @throws RateLimitedError at once if it would come too late; TimeoutError with a `timeoutMs` of 0, or if others came first
 */
export async function takeAll(charges: readonly RateCharge[], options: TakeAllOptions = {}): Promise<void> {
  checkWait(options);
  const { signal, timeoutMs = Infinity, clock = systemClock } = options;
  const bill = add(charges);
  let leftMs = timeoutMs;
  for (let waitMs = waitOf(bill); waitMs > 0; waitMs = waitOf(bill)) {
    if (leftMs <= 0) throw new TimeoutError(timeoutMs);
    if (leftMs === timeoutMs && waitMs > timeoutMs) throw new RateLimitedError(waitMs);
    const from = clock.now();
    await sleep(Math.min(waitMs, leftMs), { signal, clock });
    signal?.throwIfAborted(); // the abort may have come between the timer and this turn
    leftMs -= clock.now() - from;
  }
  for (const charge of bill) take(charge);
}

function add(charges: readonly RateCharge[]): RateCharge[] {
  const bill: RateCharge[] = [];
  for (const charge of charges) {
    const { cost = 1 } = charge;
    waitOf([{ ...charge, cost }]); // refuses a bad cost before it is hidden in a sum
    const at = bill.findIndex((other) => other.limiter === charge.limiter && keyOf(other) === keyOf(charge));
    const { cost: before = 0 } = bill[at] ?? {};
    bill.splice(at === -1 ? bill.length : at, 1, { ...charge, cost: before + cost });
  }
  return bill;
}

function waitOf(bill: readonly RateCharge[]): number {
  return bill.reduce((longest, charge) => {
    const waitMs =
      "key" in charge ? charge.limiter.retryAfterMs(charge.key, charge.cost) : charge.limiter.retryAfterMs(charge.cost);
    return Math.max(longest, waitMs);
  }, 0);
}

function take(charge: RateCharge): void {
  if ("key" in charge) charge.limiter.tryTake(charge.key, charge.cost);
  else charge.limiter.tryTake(charge.cost);
}

function keyOf(charge: RateCharge): RateKey | undefined {
  return "key" in charge ? charge.key : undefined;
}
