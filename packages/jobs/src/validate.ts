/**
 * What is wrong with an operation's input, and what it means with its defaults filled in: the same on every driver. A
 * driver calls these before it does anything, so that an operation that rejects has changed nothing.
 */
import type { Claim, NewJob } from "./job.ts";
import { toJson } from "./json.ts";
import { STATES } from "./states.ts";
import type { ClaimRequest, JobFilter, Page, Retention, Settlement, StoreOptions, SweepOptions } from "./store.ts";

/** A `NewJob` with all of its options. */
export interface PreparedJob {
  readonly queue: string;
  /** JSON. */
  readonly payload: string;
  /** When it is given, it is the due time; else `delayMs` from the store's now is. */
  readonly runAt: number | undefined;
  readonly delayMs: number;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly uniqueKey: string | undefined;
  readonly replace: boolean;
}

/** A `Settlement` whose delays are whole. */
export type PreparedSettlement = Claim &
  (
    | { readonly kind: "complete"; /** JSON. */ readonly result: string | undefined }
    | { readonly kind: "fail"; readonly error: string; readonly retryInMs: number | undefined }
    | { readonly kind: "snooze"; readonly delayMs: number; readonly reason: string | undefined }
    | { readonly kind: "release" }
  );

const DAY_MS = 86_400_000;
/** Half of what a `Date` can hold, so that the sum of an instant and a delay is exact. */
export const MAX_MS = 4.32e15;
const MAX_NAME = 255;
// oxlint-disable-next-line no-control-regex -- that is what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;
const JOB_KEYS: ReadonlySet<string> = new Set<keyof NewJob>([
  "queue",
  "payload",
  "delayMs",
  "runAt",
  "priority",
  "maxAttempts",
  "uniqueKey",
  "onConflict",
]);
const FILTER_KEYS: ReadonlySet<string> = new Set<keyof JobFilter>(["queue", "states", "ids"]);

export function prepareOptions(options: StoreOptions): {
  readonly retention: Required<{ [K in keyof Retention]: number }>;
  readonly maxPayloadBytes: number;
} {
  const { succeededMs = DAY_MS, deadMs = Infinity } = options.retention ?? {};
  return {
    retention: {
      succeededMs: checkDuration("retention.succeededMs", succeededMs, true),
      deadMs: checkDuration("retention.deadMs", deadMs, true),
    },
    maxPayloadBytes: checkWhole("maxPayloadBytes", options.maxPayloadBytes ?? 2 ** 20, 1),
  };
}

export function prepareJobs(jobs: readonly NewJob[], maxPayloadBytes: number): PreparedJob[] {
  return checkArray("jobs", jobs).map((job, index) => prepareJob(`jobs[${index}]`, job, maxPayloadBytes));
}

function prepareJob(name: string, job: NewJob, maxPayloadBytes: number): PreparedJob {
  checkKeys(name, job, JOB_KEYS);
  const { delayMs, runAt, priority = 0, maxAttempts = 4, uniqueKey, onConflict = "keep" } = job;
  if (delayMs !== undefined && runAt !== undefined)
    throw new TypeError(`${name} must have delayMs or runAt, not both: got ${delayMs} and ${runAt}`);
  if (onConflict !== "keep" && onConflict !== "replace")
    throw new TypeError(`${name}.onConflict must be "keep" or "replace", got ${show(onConflict)}`);
  return {
    queue: checkName(`${name}.queue`, job.queue),
    payload: toJson(`${name}.payload`, job.payload, maxPayloadBytes),
    runAt: runAt === undefined ? undefined : checkWhole(`${name}.runAt`, runAt, 0, MAX_MS),
    delayMs: checkDuration(`${name}.delayMs`, delayMs === undefined ? 0 : delayMs),
    priority: checkWhole(`${name}.priority`, priority, -1000, 1000),
    maxAttempts: checkWhole(`${name}.maxAttempts`, maxAttempts, 1, 1_000_000),
    uniqueKey: uniqueKey === undefined ? undefined : checkName(`${name}.uniqueKey`, uniqueKey),
    replace: onConflict === "replace",
  };
}

export function prepareSettlements(settlements: readonly Settlement[], maxResultBytes: number): PreparedSettlement[] {
  return checkArray("settlements", settlements).map((settlement, index) =>
    prepareSettlement(`settlements[${index}]`, settlement, maxResultBytes),
  );
}

function prepareSettlement(name: string, settlement: Settlement, maxResultBytes: number): PreparedSettlement {
  checkClaim(name, settlement);
  const { id, token, kind } = settlement;
  switch (kind) {
    case "complete": {
      const { result } = settlement;
      return {
        id,
        token,
        kind,
        result: result === undefined ? result : toJson(`${name}.result`, result, maxResultBytes),
      };
    }
    case "fail": {
      const { retryInMs } = settlement;
      const error = checkText(`${name}.error`, settlement.error);
      const delayMs = retryInMs === undefined ? undefined : checkDuration(`${name}.retryInMs`, retryInMs);
      return { id, token, kind, error, retryInMs: delayMs };
    }
    case "snooze": {
      const reason = settlement.reason === undefined ? undefined : checkText(`${name}.reason`, settlement.reason);
      return { id, token, kind, delayMs: checkDuration(`${name}.delayMs`, settlement.delayMs), reason };
    }
    case "release":
      return { id, token, kind };
    default:
      throw new TypeError(`${name}.kind must be complete, fail, snooze or release, got ${show(kind satisfies never)}`);
  }
}

export function checkClaimRequest({ queue, max, leaseMs, worker }: ClaimRequest): void {
  checkName("queue", queue);
  checkWhole("max", max, 1);
  checkWhole("leaseMs", leaseMs, 1, MAX_MS);
  checkText("worker", worker);
}

export function checkHeartbeat(claims: readonly Claim[], leaseMs: number): void {
  for (const [index, claim] of checkArray("claims", claims).entries()) checkClaim(`claims[${index}]`, claim);
  checkWhole("leaseMs", leaseMs, 1, MAX_MS);
}

export function prepareSweep({ queue, maxCrashes = 3 }: SweepOptions): {
  readonly queue: string | undefined;
  readonly maxCrashes: number;
} {
  if (queue !== undefined) checkName("queue", queue);
  return { queue, maxCrashes: checkWhole("maxCrashes", maxCrashes, 1) };
}

export function checkFilter(filter: JobFilter): void {
  checkKeys("filter", filter, FILTER_KEYS);
  if (filter.queue !== undefined) checkName("filter.queue", filter.queue);
  if (filter.ids !== undefined)
    for (const [index, id] of checkArray("filter.ids", filter.ids).entries()) checkText(`filter.ids[${index}]`, id);
  for (const [index, state] of checkArray("filter.states", filter.states ?? []).entries()) {
    if (!(STATES as readonly unknown[]).includes(state))
      throw new TypeError(`filter.states[${index}] must be one of ${STATES.join(", ")}, got ${show(state)}`);
  }
}

/** For what changes jobs: a filter that names nothing is taken for a mistake. */
export function checkNarrowFilter(filter: JobFilter): void {
  checkFilter(filter);
  if (filter.queue === undefined && filter.ids === undefined && filter.states === undefined)
    throw new TypeError("filter must have at least one of queue, states and ids, got none");
}

export function preparePage({ limit = 100, after }: Page): { readonly limit: number; readonly after: number } {
  checkWhole("limit", limit, 1, 1000);
  if (after === undefined) return { limit, after: 0 };
  const id = parseId(checkText("after", after));
  if (id === undefined) throw new RangeError(`after must be the id of a job, got ${show(after)}`);
  return { limit, after: id };
}

/** The number that an id stands for; undefined for what no store gives as an id, and so names no job. */
export function parseId(id: string): number | undefined {
  const number = /^[1-9]\d{0,15}$/.test(id) ? Number(id) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

export function checkName(name: string, value: string): string {
  checkText(name, value);
  if (value.length === 0 || value.length > MAX_NAME)
    throw new RangeError(`${name} must have 1 to ${MAX_NAME} characters, got ${value.length}`);
  if (CONTROL.test(value)) throw new RangeError(`${name} must have no control characters, got ${show(value)}`);
  return value;
}

/** `Infinity` as `max` sets no limit but that of exact integers. */
export function checkWhole(name: string, value: number, min: number, max: number = Infinity): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number, got ${typeof value}`);
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  const range = max === Infinity ? `>= ${min}` : `from ${min} to ${max}`;
  throw new RangeError(`${name} must be an integer ${range}, got ${value}`);
}

/** Rounded up to whole milliseconds. */
export function checkDuration(name: string, value: number, infinity: boolean = false): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number, got ${typeof value}`);
  if (value >= 0 && (value <= MAX_MS || (infinity && value === Infinity))) return Math.ceil(value);
  throw new RangeError(`${name} must be from 0 to ${MAX_MS}${infinity ? " or Infinity" : ""}, got ${value}`);
}

function checkClaim(name: string, claim: Claim): void {
  if (typeof claim !== "object" || claim === null) throw new TypeError(`${name} must be an object, got ${show(claim)}`);
  checkText(`${name}.id`, claim.id);
  checkWhole(`${name}.token`, claim.token, 0);
}

/** Well-formed, since no database keeps half of a surrogate pair. */
function checkText(name: string, value: string): string {
  if (typeof value !== "string") throw new TypeError(`${name} must be a string, got ${typeof value}`);
  if (!value.isWellFormed()) throw new RangeError(`${name} must be well-formed Unicode, got ${show(value)}`);
  return value;
}

function checkArray<T>(name: string, value: readonly T[]): readonly T[] {
  if (!Array.isArray(value)) throw new TypeError(`${name} must be an array, got ${typeof value}`);
  return value;
}

function checkKeys(name: string, value: object, known: ReadonlySet<string>): void {
  if (typeof value !== "object" || value === null) throw new TypeError(`${name} must be an object, got ${show(value)}`);
  for (const key of Object.keys(value)) {
    if (!known.has(key)) throw new TypeError(`${name} must have no property but ${[...known].join(", ")}, got ${key}`);
  }
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
