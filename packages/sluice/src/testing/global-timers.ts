/**
 * The globals that tell or measure time, on a clock that a test moves: for code that takes no clock. Nothing can put
 * `node:timers` and `node:timers/promises` on it, which hold functions of their own; nor `process.nextTick`, `process.hrtime`
 * and `queueMicrotask`, which are left as they are.
 */
import type { Clock, TimerOptions, TimerTask } from "../clock/clock.ts";
import { checkInteger } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import type { VirtualTimer } from "./virtual-clock-timers.ts";

export interface InstalledGlobals extends Disposable {
  /** Puts back what was there; timers that are set stay with the clock. Idempotent, as is disposal. */
  restore(): void;
}

export interface GlobalsClock extends Clock {
  setTimer(delayMs: number, task: TimerTask, options?: TimerOptions): VirtualTimer;
}

/** What `setTimeout` takes; anything else counts as 1. */
const MAX_DELAY_MS = 2 ** 31 - 1;
const MARK = Symbol.for("sluice.virtual-globals");
const PROMISIFIED = Symbol.for("nodejs.util.promisify.custom");

interface Clearing {
  clearImmediate(id: unknown): void;
}

type Callback = (...args: unknown[]) => void;

/** Throws when they are on a virtual clock already. */
export function installGlobals(clock: GlobalsClock): InstalledGlobals {
  if (MARK in globalThis.setTimeout) throw new Error("the globals are on a virtual clock already: restore them first");
  const setTimeout = Object.assign(
    (fn: Callback, delayMs?: number, ...args: unknown[]) => new GlobalTimer(clock, fn, toDelay(delayMs), args),
    {
      [MARK]: true,
      [PROMISIFIED]: (delayMs: number, value: unknown) =>
        new Promise((resolve) => new GlobalTimer(clock, resolve, toDelay(delayMs), [value])),
    },
  );
  const setInterval = (fn: Callback, delayMs?: number, ...args: unknown[]): GlobalTimer =>
    new GlobalTimer(clock, fn, toDelay(delayMs), args, true);
  const setImmediate = (fn: Callback, ...args: unknown[]): GlobalTimer => new GlobalTimer(clock, fn, 0, args);
  const { clearTimeout, clearInterval, clearImmediate, performance } = globalThis as Partial<Clearing> &
    typeof globalThis;
  const globals = Object.entries({
    setTimeout,
    setInterval,
    clearTimeout: clearing(clearTimeout),
    clearInterval: clearing(clearInterval),
    ...(clearImmediate === undefined ? {} : { setImmediate, clearImmediate: clearing(clearImmediate) }), // not in browsers
    Date: dateOn(clock),
  });
  const replaced = [
    ...globals.map(([key, value]) => new Replaced(globalThis, key, value)),
    new Replaced(performance, "now", () => clock.now()),
    new Replaced(AbortSignal, "timeout", (delayMs: number) => timeoutSignal(clock, delayMs)),
  ];
  const restore = (): void => {
    const other = replaced.find((each) => each.isReplacedAgain);
    if (other !== undefined) throw new Error(`${other.key} was replaced again since: that must be restored first`);
    for (const each of replaced.splice(0)) each.restore();
  };
  return { restore, [dispose]: restore };
}

class Replaced {
  readonly key: string;
  readonly #holder: object;
  readonly #value: unknown;
  readonly #before: PropertyDescriptor | undefined;

  constructor(holder: object, key: string, value: unknown) {
    this.key = key;
    this.#holder = holder;
    this.#value = value;
    this.#before = Object.getOwnPropertyDescriptor(holder, key);
    const enumerable = this.#before?.enumerable === true;
    Object.defineProperty(holder, key, { value, enumerable, configurable: true, writable: true });
  }

  get isReplacedAgain(): boolean {
    return Reflect.get(this.#holder, this.key) !== this.#value;
  }

  restore(): void {
    if (this.#before === undefined) Reflect.deleteProperty(this.#holder, this.key);
    else Object.defineProperty(this.#holder, this.key, this.#before);
  }
}

/** What Node gives out, which is an object; where a number is asked for, it is one, as in browsers. */
class GlobalTimer implements TimerTask {
  static readonly #byId = new Map<number, GlobalTimer>();
  static #lastId = 2 ** 40; // not to be taken for one of a browser's own

  readonly #clock: GlobalsClock;
  readonly #fn: Callback;
  readonly #delayMs: number;
  readonly #args: readonly unknown[];
  readonly #repeats: boolean;
  #timer: VirtualTimer | undefined;
  #background = false;
  #id: number | undefined;

  constructor(clock: GlobalsClock, fn: Callback, delayMs: number, args: readonly unknown[], repeats = false) {
    if (typeof fn !== "function") throw new TypeError(`the callback must be a function, got ${typeof fn}`);
    this.#clock = clock;
    this.#fn = fn;
    this.#delayMs = delayMs;
    this.#args = args;
    this.#repeats = repeats;
    this.refresh();
  }

  static find(id: unknown): GlobalTimer | undefined {
    if (id instanceof GlobalTimer) return id;
    return typeof id === "number" || typeof id === "string" ? this.#byId.get(Number(id)) : undefined; // else a real one's
  }

  onTimer(): void {
    const timer = this.#timer;
    try {
      this.#fn(...this.#args);
    } finally {
      if (this.#timer === timer && this.#repeats) this.refresh();
      else if (this.#timer === timer) this.close();
    }
  }

  refresh(): this {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#delayMs, this, { background: this.#background });
    return this;
  }

  close(): this {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#id !== undefined) GlobalTimer.#byId.delete(this.#id);
    return this;
  }

  ref(): this {
    return this.#keepGoing(true);
  }

  unref(): this {
    return this.#keepGoing(false);
  }

  hasRef(): boolean {
    return !this.#background;
  }

  [Symbol.toPrimitive](): number {
    this.#id ??= GlobalTimer.#lastId += 1;
    if (this.#timer !== undefined) GlobalTimer.#byId.set(this.#id, this);
    return this.#id;
  }

  [dispose](): void {
    this.close();
  }

  #keepGoing(keeps: boolean): this {
    this.#background = !keeps;
    if (this.#timer !== undefined) this.#timer.background = !keeps;
    return this;
  }
}

function toDelay(delayMs: unknown): number {
  const ms = Math.trunc(Number(delayMs));
  return ms >= 1 && ms <= MAX_DELAY_MS ? ms : 1;
}

/** What was set before is cleared as before. */
function clearing<T>(clearReal: (id: T) => void): (id: T) => void {
  return (id) => {
    const timer = GlobalTimer.find(id);
    if (timer === undefined) clearReal(id);
    else timer.close();
  };
}

function dateOn(clock: Clock): DateConstructor {
  const now = (): number => Math.floor(clock.wallNow());
  return new Proxy(Date, {
    construct: (real, args: [], made) => Reflect.construct(real, args.length === 0 ? [now()] : args, made),
    apply: (RealDate) => new RealDate(now()).toString(),
    get: (real, key, from) => (key === "now" ? now : Reflect.get(real, key, from)),
  });
}

function timeoutSignal(clock: Clock, delayMs: number): AbortSignal {
  checkInteger("delay", delayMs, { min: 0 }); // as the platform does
  const controller = new AbortController();
  const onTimer = (): void =>
    controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  clock.setTimer(delayMs, { onTimer }, { background: true }); // the platform's doesn't keep a process alive either
  return controller.signal;
}
