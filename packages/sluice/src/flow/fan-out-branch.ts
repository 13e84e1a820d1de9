/** One branch of a fan-out under way: its signal, its limit, its report. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { TimeoutError } from "../errors.ts";
import { checkMs } from "../internal/check.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Branch, BranchFunction, BranchReport } from "./fan-out-types.ts";
import type { Width } from "./fan-out-width.ts";

export interface BranchListener {
  onReport(run: BranchRun, report: BranchReport): void;
  /** An error that came after the report. */
  onLateError(error: unknown, branch: string): void;
}

export class BranchRun implements TimerTask {
  // I1  it has one report, as soon as it has ended or has been given up; then no timer is set
  // I2  its signal aborts only while there is no report, or by what became its report
  readonly name: string;
  readonly isOptional: boolean;
  report: BranchReport | undefined;
  /** Of a branch with a report. */
  value: unknown;
  readonly #fn: BranchFunction;
  readonly #timeoutMs: number;
  readonly #fallback: unknown;
  readonly #clock: Clock;
  readonly #listener: BranchListener;
  readonly #controller = new AbortController();
  #timer: Timer | undefined;
  #startedAt: number | undefined;

  constructor(name: string, branch: Branch, clock: Clock, listener: BranchListener) {
    const spec = typeof branch === "function" ? { run: branch } : branch;
    if (typeof spec?.run !== "function")
      throw new TypeError(`branch ${name} must be a function or have one as \`run\``);
    this.name = name;
    this.isOptional = spec.optional === true;
    this.#fn = spec.run;
    this.#timeoutMs = checkMs(`timeoutMs of branch ${name}`, spec.timeoutMs ?? Infinity, { min: 1, infinity: true });
    this.#fallback = spec.optional === true ? spec.fallback : undefined;
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Throws what the clock throws. */
  arm(): void {
    if (this.#timeoutMs < Infinity) this.#timer = this.#clock.setTimer(this.#timeoutMs, this);
  }

  disarm(): void {
    this.#timer?.cancel();
  }

  start(width: Width): void {
    this.#startedAt = this.#clock.now();
    const { signal } = this.#controller;
    try {
      void whenSettled(
        width.within(() => this.#fn({ signal })),
        (value) => this.#succeed(value),
        (error) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  onTimer(): void {
    queueMicrotask(() => this.expire(new TimeoutError(this.#timeoutMs))); // an abort of the same turn wins
  }

  /** Its time is over. What it does from now on is abandoned. */
  expire(error: TimeoutError): void {
    if (!this.#isOpen) return;
    this.#settle("timed-out", this.#fallback, error);
    this.#controller.abort(error);
  }

  /** Its answer is no longer wanted, but its end is. */
  abort(reason: unknown): void {
    if (this.#isOpen) this.#controller.abort(reason);
  }

  /** Not even its end is wanted any more. */
  abandon(reason: unknown): void {
    if (!this.#isOpen) return;
    this.report = this.#reportOf("failed", reason);
    this.#controller.abort(reason);
  }

  get #isOpen(): boolean {
    return this.#startedAt !== undefined && this.report === undefined;
  }

  #succeed(value: unknown): void {
    if (this.#isOpen) this.#settle("succeeded", value, undefined);
  }

  #fail(error: unknown): void {
    if (this.#isOpen) this.#settle("failed", this.#fallback, error);
    else if (error !== this.#controller.signal.reason) this.#listener.onLateError(error, this.name);
  }

  #settle(status: BranchReport["status"], value: unknown, error: unknown): void {
    this.disarm();
    this.value = value;
    this.report = this.#reportOf(status, error);
    this.#listener.onReport(this, this.report);
  }

  #reportOf(status: BranchReport["status"], error: unknown): BranchReport {
    return { status, durationMs: this.#clock.now() - (this.#startedAt ?? 0), error };
  }
}
