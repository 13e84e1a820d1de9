/**
 * Stops servers, queues, limiters, workers and pools in order, within a time, and tells what came of it. It ends nothing
 * by itself: when the report is there, it is for the application to leave.
 */
import type { Clock } from "../clock/clock.ts";
import { Deadline } from "../clock/deadline.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError } from "../errors.ts";
import { checkFunction, checkMs, checkOneOf, checkString, wrongType } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { type NameOptions, register, type Stats } from "../internal/names.ts";
import { isThenable } from "../internal/when-settled.ts";
import { planOf, type ShutdownPhase, type Stoppable, type StopPlan } from "./stoppable.ts";

export interface ShutdownOptions extends NameOptions {
  /** For all of it, at least 0: leave the platform some of what it grants (Kubernetes 30 s, Docker 10 s). @default 8_000 */
  readonly timeoutMs?: number | undefined;
  /** For one phase, at least 0. @default half of what is left, and for `close` all of it */
  readonly phaseMs?: Readonly<Partial<Record<ShutdownPhase, number>>> | undefined;
  /**
   * Stops at the first of these that the process gets, if that hasn't begun yet, and makes haste at the second. Without
   * `process`: none. @default []
   */
  readonly signals?: readonly string[] | undefined;
  /** Runs the limits. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface ShutdownAddOptions {
  /** @default what its kind says, see `Stoppable` */
  readonly phase?: ShutdownPhase | undefined;
  /** It has this long to stop, at least 0, and never longer than its phase. @default Infinity */
  readonly timeoutMs?: number | undefined;
  /** It has stopped only when this has ended too: the promise of a queue's consumers. Failing, it is reported. */
  readonly done?: PromiseLike<unknown> | undefined;
  /** Ends what is still inside when its time is up. @default its `abort`, or a server's `closeAllConnections` */
  readonly force?: ((reason: unknown) => unknown) | undefined;
}

/**
 * `inside`: its time was up before it had stopped, it was forced to end and nobody waits for it any more · `failed`: it
 * has ended, but stopping it or its `done` threw or rejected.
 */
export type StopOutcome = "running" | "stopping" | "stopped" | "failed" | "inside";

export interface TargetReport {
  readonly name: string;
  readonly phase: ShutdownPhase;
  readonly outcome: StopOutcome;
  /** From when it was told to stop until it had, or until its time was up. */
  readonly tookMs: number;
  /** The first of what stopping it, its `done` or its `force` failed with. */
  readonly error?: unknown;
  /** What its `stats()` said when its time was up: who is still inside. */
  readonly stats?: Stats | undefined;
}

export interface ShutdownReport {
  /** All have stopped, in time and without an error. */
  readonly clean: boolean;
  readonly tookMs: number;
  /** The signal of the process that began it. */
  readonly by: string | undefined;
  /** In the order in which they were told to stop. */
  readonly targets: readonly TargetReport[];
}

export interface Shutdown extends AsyncDisposable {
  readonly name: string | undefined;
  /** Aborts as stopping begins, with `ClosedError`: for loops that need no place in the order. */
  readonly signal: AbortSignal;
  /** Resolves when it is over, however it began. Never rejects. */
  readonly finished: Promise<ShutdownReport>;
  stats(): ShutdownStats;
  /** As it stands now. */
  report(): ShutdownReport;
  /**
   * Has `target` stopped with the others: `intake` all at once, `drain` one after the other in the order they were
   * added, from the source to the sink, `close` in the reverse order. Returns `target`. `name` must be new.
   * `ClosedError` once stopping has begun.
   */
  add<S extends Stoppable>(name: string, target: S, options?: ShutdownAddOptions): S;
  /** For what ended before. False if there is none of this name, or stopping has begun. */
  remove(name: string): boolean;
  /** Begins; `finished` is the result. Called again: makes no difference. */
  stop(): Promise<ShutdownReport>;
  /** Waits for nobody any more: the rest is told to stop and forced to end. Begins if that hasn't happened. */
  stopNow(): Promise<ShutdownReport>;
}

export type ShutdownStats = Readonly<{
  targets: number;
  phase: "running" | ShutdownPhase | "over";
  stopped: number;
  failed: number;
  inside: number;
}>;

const PHASES = ["intake", "drain", "close"] as const;

export function shutdown(options: ShutdownOptions = {}): Shutdown {
  return new Coordinator(options);
}

class Coordinator implements Shutdown {
  // I1  #phase goes from running through the phases to over, each once
  // I2  signals of the process are listened to until it is over, each once
  readonly name: string | undefined;
  readonly finished: Promise<ShutdownReport>;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #phaseMs: Readonly<Partial<Record<ShutdownPhase, number>>>;
  readonly #signals: readonly string[];
  readonly #stopping = new AbortController();
  readonly #haste = new AbortController();
  readonly #targets = new Map<string, Target>();
  readonly #told = new Set<Target>();
  readonly #finish: (report: ShutdownReport) => void;
  #phase: ShutdownStats["phase"] = "running";
  #hasHeard = false;
  #startedAt = 0;
  #tookMs: number | undefined;
  #by: string | undefined;

  constructor(options: ShutdownOptions) {
    this.#timeoutMs = checkMs("timeoutMs", options.timeoutMs ?? 8_000);
    this.#phaseMs = checkPhases(options.phaseMs ?? {});
    this.#signals = checkSignals(options.signals ?? []);
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    const { promise, resolve } = Promise.withResolvers<ShutdownReport>();
    [this.finished, this.#finish] = [promise, resolve];
    try {
      for (const signal of this.#signals) this.#listenTo(signal);
      register("shutdown", options, this);
    } catch (error) {
      this.#listenToNone();
      throw error;
    }
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  stats(): ShutdownStats {
    const count = (outcome: StopOutcome): number =>
      [...this.#targets.values()].filter((each) => each.outcome === outcome).length;
    return {
      targets: this.#targets.size,
      phase: this.#phase,
      stopped: count("stopped"),
      failed: count("failed"),
      inside: count("inside"),
    };
  }

  report(): ShutdownReport {
    const inOrder = new Set([...this.#told, ...this.#targets.values()]);
    const targets = Array.from(inOrder, (each) => each.report(this.#clock));
    const clean = targets.every(({ outcome }) => outcome === "stopped");
    const tookMs = this.#phase === "running" ? 0 : (this.#tookMs ?? this.#clock.now() - this.#startedAt);
    return { clean, tookMs, by: this.#by, targets };
  }

  add<S extends Stoppable>(name: string, target: S, options: ShutdownAddOptions = {}): S {
    if (this.#phase !== "running") throw new ClosedError("shutdown");
    checkString("name", name);
    if (this.#targets.has(name)) throw new RangeError(`name must be new, got ${name} again`);
    this.#targets.set(name, new Target(name, target, options));
    return target;
  }

  remove(name: string): boolean {
    return this.#phase === "running" && this.#targets.delete(name);
  }

  stop(): Promise<ShutdownReport> {
    if (this.#phase === "running") void this.#run();
    return this.finished;
  }

  stopNow(): Promise<ShutdownReport> {
    this.#haste.abort(new ClosedError("shutdown"));
    return this.stop();
  }

  async [asyncDispose](): Promise<void> {
    await this.stop();
  }

  #listenTo(signal: string): void {
    try {
      signalSource()?.on(signal, this.#onSignal);
    } catch (cause) {
      throw new RangeError(`signals must be ones that the process can listen to, got ${signal}`, { cause });
    }
  }

  #listenToNone(): void {
    for (const signal of this.#signals) signalSource()?.off(signal, this.#onSignal);
  }

  readonly #onSignal = (signal: string): void => {
    if (this.#hasHeard) return void this.stopNow();
    this.#hasHeard = true;
    if (this.#phase === "running") this.#by = signal;
    void this.stop();
  };

  async #run(): Promise<void> {
    this.#startedAt = this.#clock.now();
    const all = Deadline.after(this.#timeoutMs, { signal: this.#haste.signal, clock: this.#clock });
    this.#phase = "intake";
    for (const target of this.#targets.values()) target.expectEnd();
    this.#stopping.abort(new ClosedError("process"));
    for (const phase of PHASES) {
      this.#phase = phase;
      const ownMs = this.#phaseMs[phase] ?? (phase === "close" ? Infinity : all.leftMs / 2);
      const within = Deadline.after(ownMs, { within: all, clock: this.#clock });
      const targets = [...this.#targets.values()].filter((each) => each.phase === phase);
      if (phase === "intake") await Promise.all(targets.map((each) => this.#stop(each, within)));
      else for (const each of phase === "close" ? targets.toReversed() : targets) await this.#stop(each, within);
      within.close();
    }
    all.close();
    this.#listenToNone();
    this.#tookMs = this.#clock.now() - this.#startedAt;
    this.#phase = "over";
    this.#finish(this.report());
  }

  #stop(target: Target, within: Deadline): Promise<void> {
    this.#told.add(target);
    return target.stop(within, this.#clock);
  }
}

class Target {
  readonly name: string;
  readonly phase: ShutdownPhase;
  outcome: StopOutcome = "running";
  readonly #plan: StopPlan;
  readonly #target: { stats?(): Stats };
  readonly #timeoutMs: number;
  readonly #done: Promise<unknown> | undefined;
  #toldAt = 0;
  #tookMs: number | undefined;
  #error: { readonly error: unknown } | undefined;
  #stats: Stats | undefined;

  constructor(name: string, target: Stoppable, options: ShutdownAddOptions) {
    const plan = planOf(target);
    this.name = name;
    this.phase = checkOneOf("phase", options.phase ?? plan.phase, PHASES);
    this.#plan = { ...plan, force: options.force ?? plan.force };
    this.#target = target as { stats?(): Stats };
    this.#timeoutMs = checkMs("timeoutMs", options.timeoutMs ?? Infinity);
    const { done, force } = options;
    if (done !== undefined && !isThenable(done)) throw wrongType("done", done, "a promise");
    if (force !== undefined) checkFunction("force", force);
    this.#done = done && Promise.resolve(done);
  }

  report(clock: Clock): TargetReport {
    const { name, phase, outcome } = this;
    const tookMs = outcome === "running" ? 0 : (this.#tookMs ?? clock.now() - this.#toldAt);
    return { name, phase, outcome, tookMs, ...this.#error, ...(this.#stats && { stats: this.#stats }) };
  }

  /** From now on the failure of `done` is for the report to tell, however long its turn is off. */
  expectEnd(): void {
    this.#done?.catch(() => {});
  }

  async stop(within: Deadline, clock: Clock): Promise<void> {
    this.outcome = "stopping";
    this.#toldAt = clock.now();
    const deadline = Deadline.after(this.#timeoutMs, { within, clock });
    const ends = this.#tell(deadline).map((end) => Promise.resolve(end).catch((error) => this.#fail(error)));
    // What is told too late to be waited for has still stopped, if it does so at once.
    const isInTime = ends.length === 0 || (await endsBefore(deadline.signal, Promise.all(ends)));
    if (isInTime) this.outcome = this.#error === undefined ? "stopped" : "failed";
    else this.#force(deadline.signal.reason);
    deadline.close();
    this.#tookMs = clock.now() - this.#toldAt;
  }

  /** Tells it to stop. What comes back are the ends that make it stopped: the failure of one doesn't end the other. */
  #tell({ signal, leftMs: timeoutMs }: Deadline): PromiseLike<unknown>[] {
    const ends: PromiseLike<unknown>[] = this.#done === undefined ? [] : [this.#done];
    try {
      const end = this.#plan.stop({ signal, timeoutMs });
      if (isThenable(end)) ends.push(end);
    } catch (error) {
      this.#fail(error);
    }
    return ends;
  }

  #fail(error: unknown): void {
    if (this.outcome === "stopping") this.#error ??= { error };
  }

  #force(reason: unknown): void {
    this.outcome = "inside";
    attempt(() => (this.#stats = this.#target.stats?.())); // `named` shows its error
    attempt(
      () => this.#plan.force?.(reason),
      (error) => (this.#error ??= { error }),
    );
  }
}

/** Foreign code of which nobody waits for the end. */
function attempt(fn: () => unknown, onError: (error: unknown) => unknown = () => {}): void {
  new Promise((resolve) => resolve(fn())).catch(onError);
}

function endsBefore(signal: AbortSignal, end: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    end.then(() => resolve(true), reject);
    if (signal.aborted) resolve(false);
    else signal.addEventListener("abort", () => resolve(false), { once: true });
  });
}

function checkPhases(phaseMs: Readonly<Partial<Record<ShutdownPhase, number>>>): typeof phaseMs {
  if (typeof phaseMs !== "object") throw wrongType("phaseMs", phaseMs, "an object by phase");
  const unknown = Object.keys(phaseMs).find((key) => !PHASES.some((phase) => phase === key));
  if (unknown !== undefined) throw new RangeError(`phaseMs must be of the phases ${PHASES.join(", ")}, got ${unknown}`);
  for (const phase of PHASES) checkMs(`phaseMs.${phase}`, phaseMs[phase] ?? 0);
  return phaseMs;
}

/** Each once. */
function checkSignals(signals: readonly string[]): readonly string[] {
  if (!Array.isArray(signals)) throw wrongType("signals", signals, "a list of strings");
  const other: unknown = signals.find((signal) => typeof signal !== "string");
  if (other !== undefined) throw new TypeError(`signals must be a list of strings, got ${typeof other} in it`);
  return [...new Set(signals)];
}

/** What Node, Deno and Bun have. */
interface SignalSource {
  on(signal: string, listener: (signal: string) => void): unknown;
  off(signal: string, listener: (signal: string) => void): unknown;
}

function signalSource(): SignalSource | undefined {
  return (globalThis as { readonly process?: SignalSource }).process;
}
