/**
 * The latency that a share of the latest calls stays below, in memory that doesn't grow: a histogram whose buckets are
 * 5 % apart, which is how exact it is, and whose counts are halved now and then, so that what is long past fades.
 */
import { checkInteger, checkMs, checkNumber } from "../internal/check.ts";
import type { HedgeDelay } from "./hedge-options.ts";

export interface LatencyPercentileOptions {
  /** Until so many latencies are known, it says `initialMs`. An integer >= 1. @default 20 */
  readonly minSamples?: number | undefined;
  /** At least 0. @default Infinity, which hedges nothing */
  readonly initialMs?: number | undefined;
  /** The least it says once it knows. At least 0. @default 0 */
  readonly minMs?: number | undefined;
  /** The most it says once it knows. At least `minMs`. @default Infinity */
  readonly maxMs?: number | undefined;
  /** A latency counts half when so many more have come. An integer >= 1. @default 1_000 */
  readonly window?: number | undefined;
}

export class LatencyPercentile implements HedgeDelay {
  // I1  #below is the sum of the counts of the buckets before #bucket, #total that of all
  readonly percentile: number;
  readonly #minSamples: number;
  readonly #initialMs: number;
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #window: number;
  readonly #counts = new Float64Array(BUCKETS);
  #samples = 0;
  #total = 0;
  /** Where the percentile was when it was last asked for. */
  #bucket = 0;
  #below = 0;

  /** `percentile` is at least 1 and less than 100. */
  constructor(percentile: number, options: LatencyPercentileOptions = {}) {
    const { minSamples = 20, initialMs = Infinity, minMs = 0, maxMs = Infinity, window = 1_000 } = options;
    this.percentile = checkNumber("percentile", percentile, { min: 1 });
    if (percentile >= 100) throw new RangeError(`percentile must be < 100, got ${percentile}`);
    this.#minSamples = checkInteger("minSamples", minSamples, { min: 1 });
    this.#initialMs = checkMs("initialMs", initialMs);
    this.#minMs = checkMs("minMs", minMs, { min: 0 });
    this.#maxMs = checkMs("maxMs", maxMs, { min: minMs, infinity: true });
    this.#window = checkInteger("window", window, { min: 1 });
  }

  /** So many latencies have been recorded. */
  get samples(): number {
    return this.#samples;
  }

  /** What the share stays below, rounded up by 5 % at most. Latencies up to 0.1 ms count as that, above 1 h as 1 h. */
  get ms(): number {
    if (this.#samples < this.#minSamples) return this.#initialMs;
    const wanted = (this.#total * this.percentile) / 100;
    while (this.#below >= wanted) {
      this.#bucket -= 1;
      this.#below -= this.#count();
    }
    while (this.#below + this.#count() < wanted && this.#bucket < BUCKETS - 1) {
      this.#below += this.#count();
      this.#bucket += 1;
    }
    return Math.min(this.#maxMs, Math.max(this.#minMs, LEAST_MS * GROWTH ** this.#bucket));
  }

  /** At least 0; `Infinity` counts as 1 h. */
  record(latencyMs: number): void {
    const bucket = bucketOf(checkMs("latencyMs", latencyMs));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#samples += 1;
    this.#total += 1;
    if (bucket < this.#bucket) this.#below += 1;
    if (this.#total >= 2 * this.#window) this.#fade();
  }

  #count(): number {
    return this.#counts[this.#bucket] ?? 0;
  }

  #fade(): void {
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) this.#counts[bucket] = (this.#counts[bucket] ?? 0) / 2;
    this.#total /= 2;
    this.#below /= 2;
  }
}

const LEAST_MS = 0.1;
const GROWTH = 1.05;
const BUCKETS = 358;

/** The first whose bound is no lower. */
function bucketOf(ms: number): number {
  return Math.min(BUCKETS - 1, Math.max(0, Math.ceil(Math.log(ms / LEAST_MS) / Math.log(GROWTH))));
}
