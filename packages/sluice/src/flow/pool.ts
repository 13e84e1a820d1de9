/**
 * Resources that are dear to make and must not be shared: connections, GPUs, browser tabs. At most `max` exist at a time;
 * each is lent to one caller after the other, and callers get theirs in the order they came.
 */
import type { Clock } from "../clock/clock.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkWait } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { register } from "../internal/names.ts";
import { notice, probe } from "../internal/probe.ts";
import type { Wait } from "../internal/wait.ts";
import { grantAll, WaitList } from "../internal/wait-list.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { RunContext, WaitOptions } from "../policy.ts";
import { type Asking, type Lease, lend, PoolEntry } from "./pool-lease.ts";
import { checkPoolOptions, type PoolOptions, type PoolSettings, type PoolStats } from "./pool-options.ts";
import { Shelf } from "./pool-shelf.ts";

export interface Pool<R> extends AsyncDisposable {
  readonly max: number;
  readonly name: string | undefined;
  /** All that have a place: idle, lent, being made, validated or destroyed. At most `max`. */
  readonly size: number;
  readonly idle: number;
  readonly waiting: number;
  readonly closed: boolean;
  stats(): PoolStats;
  /** Calls `fn` with a resource: at once if one is idle, else when one has come back or was made. */
  run<T>(fn: PoolTask<R, T>, options?: WaitOptions): Promise<T>;
  /**
   * The warmest that is idle, a new one while there is room, else one that comes back. Once granted it is yours, even if
   * `signal` aborts in the same turn. Rejects with what `create` rejects with, if it was called for you.
   */
  acquire(options?: WaitOptions): Promise<Lease<R>>;
  /** One that is idle and needs no waiting to be validated, or undefined: it makes none. */
  tryAcquire(): Lease<R> | undefined;
  /** Has it destroyed: at once if it is idle, else when it comes back. Returns whether it was one of the pool's. */
  invalidate(resource: R): boolean;
  /** Resolves as soon as none is lent and nobody waits. It turns nobody away: `close` first, or newcomers can put it off. */
  drain(options?: WaitOptions): Promise<void>;
  /**
   * Callers, also those that wait, get `ClosedError` from now on; what is idle, comes back or is just being made is
   * destroyed. Resolves when nothing is left. `options` bound the wait alone: it goes on closing.
   */
  close(options?: WaitOptions): Promise<void>;
}

export type PoolTask<R, T> = (resource: R, context: RunContext) => T | PromiseLike<T>;

/** After a failure to keep up `min`. */
const REFILL_MS = 1_000;

class ResourcePool<R> implements Pool<R> {
  // I1  size = idle + borrowed + checking + creating + destroying <= max, and each of #entries is in one of these
  // I2  callers wait only while for each of them one is being made or validated, or there is no room and none idle
  // I3  leases go out in the order of the calls; no newcomer overtakes
  // I4  once closed nobody waits, none is idle, and no lease goes out
  readonly max: number;
  readonly name: string | undefined;
  readonly #settings: PoolSettings<R>;
  readonly #clock: Clock;
  readonly #line: WaitList<Lease<R>, Asking>;
  readonly #ends = new WaitList<void>();
  readonly #drains = new WaitList<void>();
  readonly #entries = new Set<PoolEntry<R>>();
  readonly #shelf: Shelf<R>;
  readonly #stop = new AbortController();
  #borrowed = 0;
  #checking = 0;
  #creating = 0;
  #destroying = 0;
  #granted = 0;
  #created = 0;
  #destroyed = 0;
  #failed = 0;
  #rejected = 0;
  #supplying = false;

  /** At most `max` at a time: an integer >= 1, or `Infinity`. */
  constructor(max: number, options: PoolOptions<R>) {
    this.#settings = checkPoolOptions(max, options);
    this.max = max;
    this.#clock = this.#settings.clock;
    this.#shelf = new Shelf(this.#settings.idleMs, this.#clock, () => this.#sweep());
    this.#line = new WaitList({ owner: this, onLeave: () => this.#onLeave() });
    this.name = options.name;
    register("pool", options, this);
    this.#refill();
  }

  get size(): number {
    return this.#shelf.size + this.#borrowed + this.#checking + this.#creating + this.#destroying;
  }

  get idle(): number {
    return this.#shelf.size;
  }

  get waiting(): number {
    return this.#line.size;
  }

  get closed(): boolean {
    return this.#stop.signal.aborted;
  }

  stats(): PoolStats {
    const { max, size, idle, waiting, closed } = this;
    const { timedOut, aborted } = this.#line;
    return {
      max,
      size,
      idle,
      borrowed: this.#borrowed,
      checking: this.#checking,
      creating: this.#creating,
      destroying: this.#destroying,
      waiting,
      oldestWaitMs: this.#line.oldestWaitMs(this.#clock),
      granted: this.#granted,
      created: this.#created,
      destroyed: this.#destroyed,
      failed: this.#failed,
      rejected: this.#rejected,
      timedOut,
      aborted,
      closed,
    };
  }

  async run<T>(fn: PoolTask<R, T>, options: WaitOptions = {}): Promise<T> {
    checkWait(options);
    const { signal } = options;
    const lease = this.tryAcquire() ?? (await this.#wait(options));
    try {
      signal?.throwIfAborted(); // the abort may have come between the grant and this turn
      const call = (): T | PromiseLike<T> => fn(lease.resource, { signal });
      return await (probe === undefined ? call() : probe.within(lease, call));
    } finally {
      lease.release();
    }
  }

  acquire(options: WaitOptions = {}): Promise<Lease<R>> {
    // Not `async`: a wait would take more turns than the fast path, and resume late (I3).
    try {
      checkWait(options);
      const lease = this.tryAcquire();
      return lease === undefined ? this.#wait(options) : Promise.resolve(lease);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryAcquire(): Lease<R> | undefined {
    while (this.waiting === 0) {
      const entry = this.#shelf.pop();
      if (entry === undefined) return undefined;
      const verdict = this.#judge(entry);
      if (verdict === true) return this.#lend(entry);
      this.#follow(entry, verdict);
      if (verdict !== false) return undefined;
    }
    return undefined; // it would overtake (I3)
  }

  invalidate(resource: R): boolean {
    for (const entry of this.#entries) {
      if (entry.isCondemned || !Object.is(entry.resource, resource)) continue;
      entry.isCondemned = true;
      if (this.#shelf.remove(entry)) this.#destroy(entry);
      return true;
    }
    return false;
  }

  drain(options: WaitOptions = {}): Promise<void> {
    return this.#until(this.#drains, this.#borrowed + this.waiting === 0, options);
  }

  close(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
    } catch (error) {
      return Promise.reject(error);
    }
    if (!this.closed) this.#close(new ClosedError("pool"));
    return this.#until(this.#ends, this.size === 0, options);
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  #close(error: ClosedError): void {
    this.#stop.abort(error);
    notice?.("closed", this, error);
    this.#rejected += this.waiting;
    this.#line.rejectAll(error);
    for (const entry of this.#shelf.takeAll()) this.#destroy(entry);
  }

  /** For who has found none idle. Throws for who is turned away. */
  #wait(options: WaitOptions): Promise<Lease<R>> {
    if (this.closed) throw this.#refuse(new ClosedError("pool"));
    options.signal?.throwIfAborted(); // by `validate`
    this.#line.refuseHaste(options);
    const { maxWaiting } = this.#settings;
    const uncared = this.waiting - this.#coming;
    if (uncared >= maxWaiting && this.size >= this.max) throw this.#refuse(new QueueFullError(maxWaiting));
    const wait = this.#line.wait(options, this.#clock, { hasAsked: false });
    this.#supply();
    return wait;
  }

  /** What is on its way to who waits. */
  get #coming(): number {
    return this.#checking + this.#creating;
  }

  /** Sees to I2. Stops at a caller who is about to leave: that calls it again. */
  #supply(): void {
    if (this.#supplying) return; // by what it has called itself
    this.#supplying = true;
    while (!this.closed && this.#coming < this.waiting && this.#line.first?.isDoomed === false) {
      const entry = this.#shelf.pop();
      if (entry !== undefined) this.#follow(entry, this.#judge(entry));
      else if (this.size < this.max) this.#create(this.#nextToAsk());
      else break;
    }
    this.#supplying = false;
  }

  #nextToAsk(): Wait<Lease<R>, Asking> | undefined {
    const { first } = this.#line;
    let wait = first;
    while (wait?.brought.hasAsked === true) wait = wait.behind;
    return wait ?? first; // what was made for them has gone to those before them
  }

  #create(asking: Wait<Lease<R>, Asking> | undefined): void {
    if (asking !== undefined) asking.brought.hasAsked = true;
    this.#creating += 1;
    const { create, lifetimeMs } = this.#settings;
    const made = new Promise<R>((resolve) => resolve(create({ signal: this.#stop.signal })));
    const onMade = (resource: R): void => {
      this.#creating -= 1;
      this.#created += 1;
      const entry = new PoolEntry(resource, this.#shelf.now(), lifetimeMs);
      this.#entries.add(entry);
      this.#place(entry);
    };
    const onFailed = (error: unknown): void => {
      this.#creating -= 1;
      this.#failed += 1;
      if (asking?.lane === undefined) this.#settings.onError?.(error);
      else asking.reject(error);
      this.#supply();
      this.#settle();
      if (this.#lacks) this.#shelf.sweepBy(this.#shelf.now() + REFILL_MS);
    };
    void made.then(onMade, onFailed);
  }

  /** Whether it may be lent. */
  #judge(entry: PoolEntry<R>): boolean | Promise<boolean> {
    const { validate, validateAfterMs } = this.#settings;
    const now = this.#shelf.now();
    if (entry.isCondemned || entry.retireAt <= now) return false;
    if (validate === undefined || now - entry.idleAt < validateAfterMs) return true;
    const onFailed = (error: unknown): false => {
      this.#failed += 1;
      this.#settings.onError?.(error);
      return false;
    };
    this.#checking += 1; // what is called here may come back, and would have another made in its place (I1)
    try {
      const verdict = validate(entry.resource);
      if (typeof verdict !== "boolean") return whenSettled(verdict, Boolean, onFailed);
      return verdict && !this.closed && !entry.isCondemned;
    } catch (error) {
      return onFailed(error);
    } finally {
      this.#checking -= 1;
    }
  }

  #follow(entry: PoolEntry<R>, verdict: boolean | Promise<boolean>): void {
    if (verdict === true) return this.#place(entry);
    if (verdict === false) return this.#destroy(entry);
    this.#checking += 1;
    const onJudged = (isFit: boolean): void => {
      this.#checking -= 1;
      this.#follow(entry, isFit);
      this.#supply();
    };
    void verdict.then(onJudged, () => onJudged(false));
  }

  /** To whose turn it is, else on the shelf. */
  #place(entry: PoolEntry<R>): void {
    if (this.closed || entry.isCondemned) return this.#destroy(entry);
    const { first } = this.#line;
    if (first === undefined || first.isDoomed) return this.#shelf.push(entry);
    this.#line.remove(first);
    first.grant(this.#lend(entry, first)); // handed over in the same turn: nobody can slip in (I3)
  }

  #lend(entry: PoolEntry<R>, wait?: object): Lease<R> {
    this.#borrowed += 1;
    this.#granted += 1;
    return lend(entry, this.#giveBack, this, wait);
  }

  readonly #giveBack = (entry: PoolEntry<R>): void => {
    this.#borrowed -= 1;
    entry.idleAt = this.#shelf.now();
    if (this.closed || entry.isCondemned || entry.retireAt <= entry.idleAt) this.#destroy(entry);
    else this.#shelf.push(entry);
    this.#supply();
    this.#settle();
  };

  #destroy(entry: PoolEntry<R>): void {
    const { destroy } = this.#settings;
    this.#entries.delete(entry);
    this.#destroying += 1;
    if (destroy === undefined) return this.#onDestroyed();
    const gone = new Promise((resolve) => resolve(destroy(entry.resource)));
    const onFailed = (error: unknown): void => {
      this.#failed += 1;
      this.#onDestroyed();
      if (this.#settings.onError === undefined) throw error;
      this.#settings.onError(error);
    };
    void gone.then(() => this.#onDestroyed(), onFailed);
  }

  #onDestroyed(): void {
    this.#destroying -= 1;
    this.#destroyed += 1;
    this.#supply();
    this.#refill();
    this.#settle();
  }

  get #lacks(): boolean {
    return !this.closed && this.size - this.#destroying < this.#settings.min;
  }

  #refill(): void {
    while (this.#lacks && this.size < this.max) this.#create(undefined);
  }

  #sweep(): void {
    const spare = this.size - this.#destroying - this.#settings.min;
    for (const entry of this.#shelf.takeExpired(spare)) this.#destroy(entry);
    this.#refill();
  }

  #onLeave(): void {
    this.#supply();
    this.#settle();
  }

  /** Wakes those who wait for the end of others. */
  #settle(): void {
    if (this.#drains.size > 0 && this.#borrowed + this.waiting === 0) grantAll(this.#drains);
    if (this.#ends.size > 0 && this.closed && this.size === 0) grantAll(this.#ends);
  }

  #until(waits: WaitList<void>, isOver: boolean, options: WaitOptions): Promise<void> {
    try {
      checkWait(options);
      if (isOver) return Promise.resolve();
      waits.refuseHaste(options);
      return waits.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #refuse(error: Error): Error {
    this.#rejected += 1;
    notice?.("rejected", this, error);
    return error;
  }
}

// A `const`, since an exported class can't declare `[asyncDispose]` (TS9038).
export const Pool: new <R>(max: number, options: PoolOptions<R>) => Pool<R> = ResourcePool;
