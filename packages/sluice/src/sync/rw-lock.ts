/**
 * Readers-writer lock: many may read, or one may write. It pays when sections are long and most of them read, which
 * `stats` tells; for short ones a `Mutex` is cheaper, and for data that is replaced as a whole a `Snapshot` needs no lock.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, QueueFullError, SelfWaitError } from "../errors.ts";
import { checkInteger, checkOneOf, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { PriorityWaitList } from "../internal/priority-wait-list.ts";
import { notice, probe } from "../internal/probe.ts";
import type { RunContext, WaitOptions } from "../policy.ts";
import { holding, holds } from "./holds.ts";
import {
  type GuardHost,
  issueRead,
  issueWrite,
  type ReadContext,
  type ReadGuard,
  type WriteContext,
  type WriteGuard,
} from "./rw-lock-guard.ts";

export interface RwLockOptions extends NameOptions {
  /**
   * Who goes first. `fair`: who came first, so that a waiting writer stops new readers and neither starves. `readers`:
   * a reader waits only while somebody writes, and writers may starve. `writers`: readers wait while a writer waits, and
   * may starve.
   * @default "fair"
   */
  readonly prefer?: "fair" | "readers" | "writers" | undefined;
  /**
   * What comes of waiting for the lock under `run` of the same lock, such as for the write lock by who reads: waiting for
   * oneself until `timeoutMs` or for good, or a `SelfWaitError` at once. Told by the async context: who holds a guard of
   * `read` or `write` is not known, nor anything in a browser, and a function that was only handed over in there, to run
   * after the section has ended, is taken for one that waits.
   * @default "wait"
   */
  readonly reentry?: "wait" | "throw" | undefined;
  /** Callers allowed to wait; the next one gets `QueueFullError`. Each is held by its caller. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type RwLockStats = Readonly<{
  /** Those who read now. */
  reading: number;
  writing: boolean;
  waiting: number;
  waitingWriters: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Read and write locks given out so far. */
  reads: number;
  writes: number;
  /** Reads among all; 0 if there were none. Near 1 or a `Mutex` would do. */
  readShare: number;
  /** How long a lock was held at most, of those that were released. Measured only if the lock has a `name`, else 0. */
  longestReadMs: number;
  longestWriteMs: number;
  /** Callers turned away because too many waited or it was closed, those that waited when it closed included. */
  rejected: number;
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

/** One way to hold the lock, as a `Policy`. */
export interface RwLockSide<C extends RunContext> {
  /** Calls `fn` while holding the lock: at once if it can be had, else after the grant. */
  run<R>(fn: (context: C) => R | PromiseLike<R>, options?: WaitOptions): Promise<R>;
}

type Mode = "read" | "write";

/** `T` is what it guards: `undefined`, if it was not made by `of`. */
export class RwLock<T = undefined> {
  // I1  #reading > 0 and #writing are never both true
  // I2  while nobody reads or writes nobody waits, but behind one that is about to hear of its abort
  // I3  fair: locks go out in arrival order. Otherwise the preferred stand before the others, and each in arrival order
  // I4  nobody waits whom the state would let in, but as in I2: not even for the rest of the turn
  // I5  once closed, no lock goes out and nobody waits, but who is about to hear of its abort
  readonly prefer: "fair" | "readers" | "writers";
  readonly name: string | undefined;
  /** Many may read at a time. There is no upgrade: to write, end the section first. */
  readonly readers: RwLockSide<ReadContext<T>>;
  /** One writes at a time. */
  readonly writers: RwLockSide<WriteContext<T>>;
  readonly #throwsOnReentry: boolean;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #waiters: PriorityWaitList<ReadGuard<T> | WriteGuard<T>, Mode>;
  readonly #host: GuardHost<T>;
  #reading = 0;
  #writing = false;
  #waitingWriters = 0;
  #reads = 0;
  #writes = 0;
  #longestReadMs = 0;
  #longestWriteMs = 0;
  #rejected = 0;
  #closed = false;

  /** A lock that guards nothing but what its users agree on. */
  constructor(options: RwLockOptions = {}) {
    this.prefer = checkOneOf("prefer", options.prefer ?? "fair", ["fair", "readers", "writers"]);
    this.#throwsOnReentry = checkOneOf("reentry", options.reentry ?? "wait", ["wait", "throw"]) === "throw";
    this.#maxWaiting = checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true });
    this.#clock = options.clock ?? systemClock;
    this.#waiters = new PriorityWaitList({ owner: this, onLeave: (mode) => this.#onLeave(mode) });
    this.#host = {
      value: undefined as T,
      endRead: (since) => this.#endRead(since),
      endWrite: (since) => this.#endWrite(since),
      downgrade: (since) => this.#downgrade(since),
    };
    this.readers = { run: (fn, waitOptions) => this.#runRead(fn, waitOptions) };
    this.writers = { run: (fn, waitOptions) => this.#runWrite(fn, waitOptions) };
    this.name = options.name;
    register("rw-lock", options, this);
  }

  /** A lock around `value`, which only who holds it can reach. */
  static of<T>(value: T, options: RwLockOptions = {}): RwLock<T> {
    const lock = new RwLock<T>(options);
    lock.#host.value = value;
    return lock;
  }

  get reading(): number {
    return this.#reading;
  }

  get writing(): boolean {
    return this.#writing;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get closed(): boolean {
    return this.#closed;
  }

  stats(): RwLockStats {
    const { timedOut, aborted } = this.#waiters;
    const [reads, writes] = [this.#reads, this.#writes];
    return {
      reading: this.#reading,
      writing: this.#writing,
      waiting: this.waiting,
      waitingWriters: this.#waitingWriters,
      oldestWaitMs: this.#waiters.oldestWaitMs(this.#clock),
      reads,
      writes,
      readShare: reads / Math.max(1, reads + writes),
      longestReadMs: this.#longestReadMs,
      longestWriteMs: this.#longestWriteMs,
      rejected: this.#rejected,
      timedOut,
      aborted,
      closed: this.#closed,
    };
  }

  /** A read lock as soon as it can be had. Once granted it is yours, even if `signal` aborts in the same turn. */
  read(options: WaitOptions = {}): Promise<ReadGuard<T>> {
    try {
      checkWait(options);
      const guard = this.tryRead();
      return guard === undefined ? this.#wait<ReadGuard<T>>("read", options) : Promise.resolve(guard);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The write lock as soon as it can be had. Once granted it is yours, even if `signal` aborts in the same turn. */
  write(options: WaitOptions = {}): Promise<WriteGuard<T>> {
    try {
      checkWait(options);
      const guard = this.tryWrite();
      return guard === undefined ? this.#wait<WriteGuard<T>>("write", options) : Promise.resolve(guard);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A read lock now, or undefined. Like any newcomer it overtakes nobody, unless readers are preferred. */
  tryRead(): ReadGuard<T> | undefined {
    if (this.#closed || this.#writing) return undefined;
    return this.waiting === 0 || this.prefer === "readers" ? this.#startRead() : undefined;
  }

  /** The write lock now, or undefined. */
  tryWrite(): WriteGuard<T> | undefined {
    const isFree = this.#reading === 0 && !this.#writing && this.waiting === 0;
    return isFree && !this.#closed ? this.#startWrite() : undefined;
  }

  /** Waiters and newcomers get `ClosedError`; locks that are held stay so until they are released. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    notice?.("closed", this);
    if (this.waiting === 0) return;
    const error = new ClosedError("lock");
    for (const wait of this.#waiters.live()) wait.reject(this.#refuse(error));
  }

  async #runRead<R>(fn: (context: ReadContext<T>) => R | PromiseLike<R>, options: WaitOptions = {}): Promise<R> {
    checkWait(options);
    const { signal } = options;
    const guard = this.tryRead() ?? (await this.read(options));
    try {
      signal?.throwIfAborted(); // the abort may have come between the grant and this turn
      const call = (): R | PromiseLike<R> => fn({ signal, value: guard.value });
      return await this.#within(guard, call);
    } finally {
      guard.release();
    }
  }

  async #runWrite<R>(fn: (context: WriteContext<T>) => R | PromiseLike<R>, options: WaitOptions = {}): Promise<R> {
    checkWait(options);
    const { signal } = options;
    const guard = this.tryWrite() ?? (await this.write(options));
    try {
      signal?.throwIfAborted();
      const replace = (value: T): void => guard.replace(value);
      const call = (): R | PromiseLike<R> => fn({ signal, value: guard.value, replace });
      return await this.#within(guard, call);
    } finally {
      guard.release();
    }
  }

  #within<R>(guard: ReadGuard<T> | WriteGuard<T>, call: () => R): R {
    const known = this.#throwsOnReentry ? (): R => holding(this, guard, call) : call;
    return probe === undefined ? known() : probe.within(guard, known);
  }

  #wait<G extends ReadGuard<T> | WriteGuard<T>>(mode: Mode, options: WaitOptions): Promise<G> {
    if (this.#closed) throw this.#refuse(new ClosedError("lock"));
    if (this.#throwsOnReentry && holds(this)) throw new SelfWaitError("lock");
    this.#waiters.refuseHaste(options);
    if (this.waiting >= this.#maxWaiting) throw this.#refuse(new QueueFullError(this.#maxWaiting));
    const isPreferred = this.prefer === (mode === "read" ? "readers" : "writers");
    const wait = this.#waiters.wait(options, this.#clock, mode, isPreferred ? 1 : 0);
    if (mode === "write") this.#waitingWriters += 1;
    return wait as Promise<G>;
  }

  #refuse(error: Error): Error {
    this.#rejected += 1;
    notice?.("rejected", this, error);
    return error;
  }

  #onLeave(mode: Mode): void {
    if (mode === "write") this.#waitingWriters -= 1;
    this.#admit(); // readers may have waited for this writer only
  }

  /** Lets in whoever is next and may, one after the other, up to one that will leave by itself. */
  #admit(): void {
    if (this.#closed) return;
    for (let { first } = this.#waiters; first !== undefined && !first.isDoomed; { first } = this.#waiters) {
      const isReader = first.brought === "read";
      if (this.#writing || (!isReader && this.#reading > 0)) return;
      this.#waiters.remove(first);
      if (!isReader) this.#waitingWriters -= 1;
      first.grant(isReader ? this.#startRead(first) : this.#startWrite(first));
    }
  }

  #startRead(wait?: object): ReadGuard<T> {
    this.#reading += 1;
    this.#reads += 1;
    const guard = issueRead(this.#host, this.#now());
    probe?.took(this, guard, 1, wait);
    return guard;
  }

  #startWrite(wait?: object): WriteGuard<T> {
    this.#writing = true;
    this.#writes += 1;
    const guard = issueWrite(this.#host, this.#now());
    probe?.took(this, guard, 1, wait);
    return guard;
  }

  #endRead(since: number): void {
    this.#reading -= 1;
    this.#longestReadMs = Math.max(this.#longestReadMs, this.#now() - since);
    if (this.#reading === 0) this.#admit();
  }

  #endWrite(since: number): void {
    this.#writing = false;
    this.#longestWriteMs = Math.max(this.#longestWriteMs, this.#now() - since);
    this.#admit();
  }

  #downgrade(since: number): ReadGuard<T> {
    this.#writing = false;
    this.#longestWriteMs = Math.max(this.#longestWriteMs, this.#now() - since);
    const guard = this.#startRead(); // before anybody else
    this.#admit();
    return guard;
  }

  /** Reading the system's time takes as long as all else. */
  #now(): number {
    return this.name === undefined ? 0 : this.#clock.now();
  }
}
