/** When a share of calls is too much: what `countWindow` and `timeWindow` have in common. */
import { checkInteger, checkMs, checkNumber } from "../internal/check.ts";

export interface CircuitRateOptions {
  /** Opens when at least this share of the calls has failed: above 0, up to 1. @default 0.5 */
  readonly failureRate?: number | undefined;
  /** Opens when at least this share of the calls was slow: above 0, up to 1. @default 1 */
  readonly slowRate?: number | undefined;
  /** A call that takes at least so long is slow, whatever comes of it. At least 1. @default Infinity, and no clock is asked */
  readonly slowMs?: number | undefined;
  /** Never opens while it remembers fewer calls. An integer >= 1. @default 10 */
  readonly minCalls?: number | undefined;
}

/** How many calls of a kind are remembered. */
export interface CircuitCounts {
  readonly calls: number;
  readonly failures: number;
  readonly slow: number;
}

export class CircuitRates {
  /** Undefined if no call is slow. */
  readonly slowMs: number | undefined;
  readonly #failureRate: number;
  readonly #slowRate: number;
  readonly #minCalls: number;

  constructor(options: CircuitRateOptions) {
    const { failureRate = 0.5, slowRate = 1, slowMs = Infinity, minCalls = 10 } = options;
    this.#failureRate = checkRate("failureRate", failureRate);
    this.#slowRate = checkRate("slowRate", slowRate);
    checkMs("slowMs", slowMs, { min: 1, infinity: true });
    this.slowMs = slowMs === Infinity ? undefined : slowMs;
    this.#minCalls = checkInteger("minCalls", minCalls, { min: 1 });
  }

  /** `size` is how many calls there can be at most: to wait for more would be to wait for ever. */
  exceededBy({ calls, failures, slow }: CircuitCounts, size: number = Infinity): boolean {
    if (calls < Math.min(this.#minCalls, size)) return false;
    return failures >= this.#failureRate * calls || slow >= this.#slowRate * calls;
  }
}

function checkRate(name: string, rate: number): number {
  if (checkNumber(name, rate, { min: 0 }) > 0 && rate <= 1) return rate;
  throw new RangeError(`${name} must be above 0 and at most 1, got ${rate}`);
}
