/**
 * What can be opened and closed, and lets callers through while it is open: to pause work and resume it. For what opens
 * once and for good use `Latch`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { QueueFullError } from "../errors.ts";
import { checkInteger, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { WaitList } from "../internal/wait-list.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";

export interface GateOptions extends NameOptions {
  /** How it starts. @default false */
  readonly open?: boolean | undefined;
  /** Callers allowed to wait; the next one gets `QueueFullError`. Each is held by its caller. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type GateStats = Readonly<{
  isOpen: boolean;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Callers let through so far. */
  passed: number;
  /** Callers turned away because too many waited. */
  rejected: number;
  timedOut: number;
  aborted: number;
}>;

export class Gate implements Policy {
  // I1  closed, or nobody waits but those who are about to hear of their abort
  // I2  who has been let through stays so, whatever is closed after
  readonly name: string | undefined;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #waiters: WaitList<void>;
  #isOpen: boolean;
  #passed = 0;
  #rejected = 0;

  constructor(options: GateOptions = {}) {
    this.#maxWaiting = checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true });
    this.#isOpen = options.open ?? false;
    if (typeof this.#isOpen !== "boolean") throw new TypeError(`open must be a boolean, got ${typeof this.#isOpen}`);
    this.#clock = options.clock ?? systemClock;
    this.#waiters = new WaitList<void>({ owner: this });
    this.name = options.name;
    register("gate", options, this);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  stats(): GateStats {
    const { isOpen, waiting } = this;
    const { timedOut, aborted } = this.#waiters;
    const oldestWaitMs = this.#waiters.oldestWaitMs(this.#clock);
    return { isOpen, waiting, oldestWaitMs, passed: this.#passed, rejected: this.#rejected, timedOut, aborted };
  }

  /** Lets all who wait through, in the order they came, and all who come. */
  open(): void {
    this.#isOpen = true;
    this.pulse();
  }

  /** Who comes from now on waits. What runs already is let be. */
  close(): void {
    this.#isOpen = false;
  }

  /** Lets those through that wait now, and opens for nobody else. */
  pulse(): void {
    for (const wait of this.#waiters.live()) {
      this.#waiters.remove(wait);
      this.#passed += 1;
      wait.grant();
    }
  }

  /** Until it is open: at once if it is. A closing in between doesn't call back who has been let through. */
  wait(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (this.#isOpen) {
        this.#passed += 1;
        return Promise.resolve();
      }
      this.#waiters.refuseHaste(options);
      if (this.waiting >= this.#maxWaiting) {
        const error = new QueueFullError(this.#maxWaiting);
        this.#rejected += 1;
        notice?.("rejected", this, error);
        throw error;
      }
      return this.#waiters.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Calls `fn` at once if it is open, else when it opens. */
  async run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    checkWait(options);
    const { signal } = options;
    if (this.#isOpen) this.#passed += 1;
    else await this.wait(options);
    signal?.throwIfAborted(); // the abort may have come between the opening and this turn
    return await fn({ signal });
  }
}
