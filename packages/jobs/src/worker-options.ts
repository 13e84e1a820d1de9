/** What a worker can be told, and what it tells. */
import { systemClock, type Clock } from "sluice";
import { checkInteger, checkMs, checkSignal, systemRandom } from "sluice/internal";
import type { ClaimedJob, DeadJob } from "./job.ts";
import { checkDuration, checkName, checkWhole, MAX_MS } from "./validate.ts";

export interface WorkerOptions {
  /** Jobs that run at once. An integer >= 1. @default 10 */
  readonly concurrency?: number | undefined;
  /**
   * How long a job stays with a worker that has died. Heartbeats come at a third of it, and lapsed leases are looked for
   * at half of it. An integer from 1 to 4.32e15. @default 30_000
   */
  readonly leaseMs?: number | undefined;
  /**
   * The longest that it sleeps, to find what other processes added; what this process adds wakes it at once. At least 1;
   * may be `Infinity`. @default 1_000
   */
  readonly pollMs?: number | undefined;
  /**
   * The time limit of an attempt: its signal aborts with `TimeoutError`, the attempt has failed, and its slot is free,
   * whatever the handler still does. At least 1. @default Infinity
   */
  readonly jobTimeoutMs?: number | undefined;
  /** Crashes after which a job is quarantined. An integer >= 1. @default 3 */
  readonly maxCrashes?: number | undefined;
  /**
   * Back-off between attempts: full jitter below `baseMs`, doubled with each attempt, up to `maxMs`; each from 0 to
   * 4.32e15. @default 1_000 and 60_000
   */
  readonly retry?: { readonly baseMs?: number | undefined; readonly maxMs?: number | undefined } | undefined;
  /** Whether another attempt may help; "stop" makes the job dead. @default "retry", but for `UnrecoverableError` */
  readonly classify?: ((error: unknown) => "retry" | "stop") | undefined;
  /**
   * Told of each attempt that failed, once that is saved: what the handler threw, or the `TimeoutError` of its time
   * limit. Not of attempts that were snoozed, given back, lost, or settled by the handler itself; nor of crashes.
   */
  readonly onFailure?: ((error: unknown, failure: AttemptFailure) => unknown) | undefined;
  /**
   * Told of each job of the queue that ends as dead or quarantined, once that is saved: by a failure here, or by a crash
   * anywhere that a sweep of this worker found. It is told once or, if this process dies first, never: what must not be
   * missed is in the store, by `list({ states: ["dead", "quarantined"] })`.
   */
  readonly onDead?: ((job: DeadJob) => unknown) | undefined;
  /**
   * What goes wrong around the jobs: a store that fails, a lost lease, a result that is no JSON, a hook that throws or
   * rejects. The worker goes on in all of these. @default console.error
   */
  readonly onError?: ((error: unknown, context: WorkerErrorContext) => void) | undefined;
  /** Who claims, shown by the store; makes the worker visible to `sluice/observe`. @default "worker", not visible */
  readonly name?: string | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

export interface AttemptFailure {
  /** As the handler had it. */
  readonly job: ClaimedJob;
  /** Undefined: there is no further attempt, the job is dead. */
  readonly retryInMs: number | undefined;
}

export interface WorkerErrorContext {
  readonly queue: string;
  /** `hook`: `onFailure` or `onDead`. */
  readonly during: "claim" | "run" | "heartbeat" | "settle" | "sweep" | "prune" | "hook";
  /** Where it is about one job. */
  readonly id?: string | undefined;
}

export interface StopOptions {
  /** How long running jobs may take to end by themselves. At least 0, finite. @default 10_000 */
  readonly drainMs?: number | undefined;
  /**
   * How long they may take after their signal has aborted, a fifth of which is kept for giving jobs back. At least 0,
   * finite. @default 5_000
   */
  readonly abortMs?: number | undefined;
  /**
   * For all of it, at least 0: if `drainMs` and `abortMs` are longer together, both are shortened in proportion.
   * @default Infinity
   */
  readonly timeoutMs?: number | undefined;
  /** Asks for haste: what still runs is aborted and given back at once, and only the store is waited for. */
  readonly signal?: AbortSignal | undefined;
}

export interface StopReport {
  /** Jobs whose handler ended, and whose outcome is saved. */
  readonly finished: number;
  /** Jobs whose signal was aborted. */
  readonly aborted: number;
  /** Jobs that were given back, ready for somebody else, the attempt not charged. */
  readonly released: readonly string[];
  /** Jobs whose outcome or release could not be saved: they run again once their lease has lapsed. */
  readonly lost: readonly string[];
}

export type WorkerStats = {
  readonly state: "new" | "running" | "stopping" | "stopped";
  readonly running: number;
  /** Ended, but not saved yet. */
  readonly unsettled: number;
  readonly completed: number;
  readonly failed: number;
  readonly snoozed: number;
  readonly released: number;
  /** Settled by the handler itself. */
  readonly selfSettled: number;
  readonly lost: number;
};

export interface ResolvedWorkerOptions {
  readonly name: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly jobTimeoutMs: number;
  readonly maxCrashes: number;
  readonly retry: { readonly baseMs: number; readonly maxMs: number };
  readonly classify: (error: unknown) => "retry" | "stop";
  readonly onFailure: WorkerOptions["onFailure"];
  readonly onDead: WorkerOptions["onDead"];
  readonly onError: (error: unknown, context: WorkerErrorContext) => void;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Checks the options and fills in the defaults. */
export function resolveWorkerOptions(options: WorkerOptions): ResolvedWorkerOptions {
  const { name = "worker", concurrency = 10, leaseMs = 30_000, pollMs = 1_000, maxCrashes = 3 } = options;
  const { jobTimeoutMs = Infinity, retry: { baseMs = 1_000, maxMs = 60_000 } = {} } = options;
  return {
    name: checkName("name", name),
    concurrency: checkInteger("concurrency", concurrency, { min: 1 }),
    leaseMs: checkWhole("leaseMs", leaseMs, 1, MAX_MS),
    pollMs: checkMs("pollMs", pollMs, { min: 1, infinity: true }),
    jobTimeoutMs: checkMs("jobTimeoutMs", jobTimeoutMs, { min: 1, infinity: true }),
    maxCrashes: checkInteger("maxCrashes", maxCrashes, { min: 1 }),
    retry: {
      baseMs: checkDuration("retry.baseMs", baseMs),
      maxMs: checkDuration("retry.maxMs", maxMs),
    },
    classify: options.classify ?? (() => "retry"),
    onFailure: checkHook("onFailure", options.onFailure),
    onDead: checkHook("onDead", options.onDead),
    onError: options.onError ?? logError,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

/** How long to drain and to abort, within what all of it may take. */
export function resolveStopOptions({ drainMs = 10_000, abortMs = 5_000, timeoutMs = Infinity, signal }: StopOptions): {
  readonly drainMs: number;
  readonly abortMs: number;
} {
  checkSignal(signal);
  const wantedMs = checkMs("drainMs", drainMs, { min: 0 }) + checkMs("abortMs", abortMs, { min: 0 });
  const share = checkMs("timeoutMs", timeoutMs) < wantedMs ? timeoutMs / wantedMs : 1;
  return { drainMs: drainMs * share, abortMs: abortMs * share };
}

function checkHook<F>(name: string, hook: F): F {
  if (hook === undefined || typeof hook === "function") return hook;
  throw new TypeError(`${name} must be a function, got ${typeof hook}`);
}

function logError(error: unknown, { queue, during, id }: WorkerErrorContext): void {
  console.error(`worker of queue ${queue}, ${during}${id === undefined ? "" : ` of job ${id}`}:`, error);
}
