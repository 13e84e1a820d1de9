/**
 * One native timer for any number of ours: a `TimerQueue` and the `setTimeout` that wakes it. Set to the earliest timer,
 * and left alone when that one is cancelled: to set and clear it for each call that ends in time would cost more than
 * waking once in vain. With the last timer it stops keeping the process alive.
 */
import type { Timer, TimerTask } from "./clock.ts";
import { MAX_LEG_MS } from "./system.ts";
import { TimerQueue } from "./timer-queue.ts";

/** The runtime's own, whatever a test puts in their place later: what was set before goes on by them. */
const { setTimeout, clearTimeout, performance } = globalThis;
const { now } = performance; // oxlint-disable-line typescript/unbound-method -- bound at each call

/** Whether timers are still those of the runtime. Fakes by Sinon, Vitest and Jest say so; wrappers count as fakes. */
export function isRuntimesOwn(): boolean {
  return globalThis.setTimeout === setTimeout && !IS_FAKED;
}

const IS_FAKED = [setTimeout, now].some((each) => "clock" in each || "_isMockFunction" in each);

interface AsyncHooks {
  readonly AsyncLocalStorage: { snapshot(): (fn: () => void) => void };
}

/** A shared timer belongs to no caller: it must not keep the async context of whoever happened to arm it. */
const { process } = globalThis as { process?: { getBuiltinModule?(id: string): AsyncHooks | undefined } };
const outside =
  process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage.snapshot() ?? ((fn: () => void) => fn());

interface Native {
  ref?(): unknown;
  unref?(): unknown;
}

export class Alarm {
  // I1  while the queue holds a timer and no task runs, #native is armed, for #wakeAt or a leg before it
  // I2  #wakeAt is not later than the earliest timer is due; -Infinity while tasks run, which arms nothing
  // I3  #native keeps the process alive only while there is a timer, and never in the background
  readonly #queue = new TimerQueue();
  readonly #background: boolean;
  #native: (ReturnType<typeof setTimeout> & Native) | undefined;
  #wakeAt = Infinity;
  /** What a task sets waits for a later turn, however coarse the clock is. */
  #notBefore = 0;

  constructor(background: boolean) {
    this.#background = background;
  }

  set(delayMs: number, task: TimerTask): Timer {
    const at = now.call(performance) + (delayMs > 0 ? delayMs : 0);
    const dueAt = Math.ceil(Math.max(at, this.#notBefore)); // whole, or all that are set in one millisecond would arm it
    const handle = this.#queue.insert(dueAt, task);
    if (dueAt < this.#wakeAt || this.#native === undefined) this.#arm();
    else if (this.#queue.size === 1 && !this.#background) this.#native.ref?.();
    return new QueuedTimer(this, handle);
  }

  cancel(handle: number): void {
    if (!this.#queue.cancel(handle) || this.#queue.size > 0) return;
    if (this.#native?.unref === undefined) this.#disarm();
    else this.#native.unref();
  }

  #arm(): void {
    clearTimeout(this.#native);
    this.#wakeAt = this.#queue.nextDueAt();
    const delayMs = Math.min(Math.max(0, Math.ceil(this.#wakeAt - now.call(performance))), MAX_LEG_MS); // Node warns below 0
    outside(() => {
      this.#native = setTimeout(this.#wake, delayMs);
    });
    if (this.#background) this.#native?.unref?.(); // browsers need none and have none
  }

  #disarm(): void {
    clearTimeout(this.#native);
    this.#native = undefined;
    this.#wakeAt = Infinity;
  }

  /** Node wakes up to a millisecond early (https://github.com/nodejs/node/issues/26578), and a leg may be one of many. */
  readonly #wake = (): void => {
    const until = now.call(performance);
    this.#wakeAt = -Infinity;
    this.#notBefore = Math.floor(until) + 1;
    try {
      for (let task = this.#queue.popDue(until); task !== undefined; task = this.#queue.popDue(until)) task.onTimer();
    } finally {
      // Also when a task has thrown: its error is the runtime's to report, and the others' turn is the next.
      if (this.#queue.size > 0) this.#arm();
      else this.#disarm();
    }
  };
}

class QueuedTimer implements Timer {
  readonly #alarm: Alarm;
  readonly #handle: number;

  constructor(alarm: Alarm, handle: number) {
    this.#alarm = alarm;
    this.#handle = handle;
  }

  cancel(): void {
    this.#alarm.cancel(this.#handle);
  }
}
