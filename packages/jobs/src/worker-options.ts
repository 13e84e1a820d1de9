/** What a worker can be told, and what it tells. */
import { systemClock, type Clock } from "sluice";
import { checkInteger, checkMs, systemRandom } from "sluice/internal";
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
   * What goes wrong around the jobs: a store that fails, a lost lease, a result that is no JSON. The worker goes on in
   * all of these. @default console.error
   */
  readonly onError?: ((error: unknown, context: WorkerErrorContext) => void) | undefined;
  /** Who claims, shown by the store; makes the worker visible to `sluice/observe`. @default "worker", not visible */
  readonly name?: string | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

export interface WorkerErrorContext {
  readonly queue: string;
  readonly during: "claim" | "run" | "heartbeat" | "settle" | "sweep" | "prune";
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
    onError: options.onError ?? logError,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

export function resolveStopOptions({ drainMs = 10_000, abortMs = 5_000 }: StopOptions): Required<{
  [K in keyof StopOptions]: number;
}> {
  return { drainMs: checkMs("drainMs", drainMs, { min: 0 }), abortMs: checkMs("abortMs", abortMs, { min: 0 }) };
}

function logError(error: unknown, { queue, during, id }: WorkerErrorContext): void {
  console.error(`worker of queue ${queue}, ${during}${id === undefined ? "" : ` of job ${id}`}:`, error);
}
