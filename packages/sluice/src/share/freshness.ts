/** How values of a cache age, if they do more than end with their `ttlMs`. */
import { checkFunction, checkMs, checkNumber } from "../internal/check.ts";
import { type Random, systemRandom } from "../internal/random.ts";

export interface FreshnessOptions {
  /** A value is forgotten when it has not been used for this long. At least 0. @default Infinity */
  readonly idleMs?: number | undefined;
  /** For so long after its `ttlMs` a value is given out at once while a new one is loaded. At least 0. @default 0 */
  readonly staleMs?: number | undefined;
  /** For so long after its `ttlMs` a value is given out if no new one can be loaded. At least 0. @default 0 */
  readonly staleOnErrorMs?: number | undefined;
  /**
   * In this last share of its `ttlMs` a value that is asked for is loaded anew in the background, so that nobody has to
   * wait for what is in use. At least 0 and below 1. @default 0
   */
  readonly refreshAhead?: number | undefined;
  /**
   * Takes up to this share off each `ttlMs`, so that what was kept together doesn't end together. At least 0 and below
   * 1. @default 0
   */
  readonly jitter?: number | undefined;
  /** `ttlMs` of `undefined` and `null`: that there is nothing is often true for shorter. At least 0. @default the cache's */
  readonly absentTtlMs?: number | undefined;
  /**
   * How long a failure counts: who asks meanwhile gets the same error, or the old value if there is one, without a load.
   * At least 0. @default 0
   */
  readonly failureTtlMs?: number | undefined;
  /** Told of each failure for which the old value stands in. What this throws is an unhandled rejection. */
  readonly onError?: ((error: unknown, key: unknown) => void) | undefined;
  /** Draws the `jitter`. @default Math.random */
  readonly random?: Random | undefined;
}

/** For the `freshness` of a cache, or of several. */
export function freshness(options: FreshnessOptions): Freshness {
  return new Freshness(options);
}

export class Freshness {
  readonly absentTtlMs: number | undefined;
  readonly failureTtlMs: number;
  readonly #idleMs: number;
  readonly #staleMs: number;
  readonly #keepMs: number;
  readonly #refreshAhead: number;
  readonly #jitter: number;
  readonly #onError: ((error: unknown, key: unknown) => void) | undefined;
  readonly #random: Random;

  constructor(options: FreshnessOptions) {
    const { absentTtlMs, onError } = options;
    if (onError !== undefined) checkFunction("onError", onError);
    this.absentTtlMs = absentTtlMs === undefined ? undefined : checkMs("absentTtlMs", absentTtlMs);
    this.failureTtlMs = checkMs("failureTtlMs", options.failureTtlMs ?? 0);
    this.#idleMs = checkMs("idleMs", options.idleMs ?? Infinity);
    this.#staleMs = checkMs("staleMs", options.staleMs ?? 0);
    this.#keepMs = Math.max(this.#staleMs, checkMs("staleOnErrorMs", options.staleOnErrorMs ?? 0));
    this.#refreshAhead = checkBelowOne("refreshAhead", options.refreshAhead ?? 0);
    this.#jitter = checkBelowOne("jitter", options.jitter ?? 0);
    this.#onError = onError;
    this.#random = checkFunction("random", options.random ?? systemRandom);
  }

  /** Of a value, or of a failure, which is never stale and never renewed. */
  begin(now: number, fullMs: number, isFailure: boolean, idleMs: number | undefined): Life {
    const ttlMs = fullMs * (1 - this.#jitter * this.#random());
    const life = new Life(now, checkMs("idleMs", idleMs ?? this.#idleMs), now + ttlMs);
    if (isFailure) return life;
    life.renewAt = now + ttlMs * (1 - this.#refreshAhead);
    life.servedUntil += this.#staleMs;
    life.keptUntil += this.#keepMs;
    return life;
  }

  /** No newer value could be had. */
  hold(life: Life, now: number, error: unknown, key: unknown): void {
    const onError = this.#onError;
    life.renewAt = Math.min(now + this.failureTtlMs, life.keptUntil);
    life.servedUntil = Math.max(life.servedUntil, life.renewAt);
    if (onError !== undefined) void Promise.resolve().then(() => onError(error, key));
  }
}

export class Life {
  // I1  servedUntil <= keptUntil
  readonly #idleMs: number;
  #usedAt: number;
  /** From then on a read begins a load in the background. */
  renewAt: number = Infinity;
  /** Until then a read is answered with the value at once. */
  servedUntil: number;
  /** Until then it stays, in case that no newer one can be had. */
  keptUntil: number;

  constructor(now: number, idleMs: number, expiresAt: number) {
    this.#usedAt = now;
    this.#idleMs = idleMs;
    this.servedUntil = this.keptUntil = expiresAt;
  }

  /** It is used: until when it can be used again without another look. */
  touch(now: number): number {
    this.#usedAt = now;
    return Math.min(this.renewAt, this.servedUntil, now + this.#idleMs);
  }

  isGone(now: number): boolean {
    return now >= Math.min(this.keptUntil, this.#usedAt + this.#idleMs);
  }
}

function checkBelowOne(name: string, value: number): number {
  if (checkNumber(name, value, { min: 0 }) < 1) return value;
  throw new RangeError(`${name} must be below 1, got ${value}`);
}
