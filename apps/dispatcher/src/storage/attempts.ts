/**
 * Procedures on one notification that is being delivered. Each settles the job in the transaction that moves the
 * notification, and an attempt whose claim is lost changes nothing:
 *
 *     queued | deferred ── begin ───> sending ── finish ──> delivered | queued (for its retry) | dead
 *                       ├─ begin ───> deferred | dropped (over the user's limit) | dead (past its deadline)
 *                       ├─ turnAway > deferred (by the provider's breaker or the budget of retries) | dead (past its deadline)
 *                       └─ close ───> dropped | dead (it can't be sent at all)
 *
 * `begin` records the intent before the provider is asked. Where no outcome follows, the process died in between, and
 * the next procedure says so: whether the provider took the message isn't known, and it goes out again with its old id.
 */
import type { Claim, Settlement } from "@sluice/jobs";
import type { JobsInTransaction } from "@sluice/jobs/sqlite";
import type { DatabaseSync } from "node:sqlite";
import type { HistoryEntry } from "../model.ts";
import { prepareBuckets } from "./buckets.ts";
import type { Attempting, Change, FinishInput, Outcome, Procedures, Refused } from "./calls.ts";
import { hasEnded, prepareRows, type Move, type NotificationRow } from "./rows.ts";

const REFUSED: Refused = { kind: "refused" };

export function prepareAttempts(db: DatabaseSync): Pick<Procedures, "begin" | "finish" | "turnAway" | "close"> {
  const rows = prepareRows(db);
  const buckets = prepareBuckets(db);

  /** The row, if this job may move it. A job whose notification has ended, is gone or is redriven is done with. */
  const open = ({ claim, notification, round }: Attempting, jobs: JobsInTransaction): NotificationRow | undefined => {
    if (!jobs.holds(claim)) return undefined;
    const row = rows.get(notification);
    if (row !== undefined && row.round === round && !hasEnded(row)) return row;
    jobs.settle([complete(claim)]);
    return undefined;
  };

  const settle = (row: NotificationRow, jobs: JobsInTransaction, settlement: Settlement, move: Move): Change => {
    const [settled] = jobs.settle([settlement]);
    if (settled !== true) throw new Error(`the claim on job ${settlement.id} was lost within a transaction`);
    return { kind: "changed", from: rows.move(row, move), to: move.status, reason: move.reason };
  };

  return {
    begin(input, jobs) {
      const { run, claim, perUser, deadlineMs } = input;
      const { now } = jobs;
      const row = open(input, jobs);
      if (row === undefined) return REFUSED;
      const before = lostOutcome(row, now);
      const late = pastDeadline(row, now, deadlineMs);
      if (late !== undefined) return settle(row, jobs, complete(claim), ended(run, "dead", late, now, before));
      const missed = missedItsTurn(row, now, perUser.perMs);
      if (row.charged === 0 || missed) {
        const reserve = row.over_limit === "defer" || row.round > 0; // who was redriven is wanted, and not dropped
        const waitMs = buckets.take(row.user, perUser, now, reserve);
        const limit = `over the limit of ${perUser.count} in ${perUser.perMs / 1_000} s`;
        const reason = missed ? `${limit}, and its turn was missed` : limit;
        if (waitMs > 0 && !reserve)
          return settle(row, jobs, complete(claim), ended(run, "dropped", reason, now, before));
        if (waitMs > 0) {
          const until = now + waitMs;
          const steps: Move["steps"] = [...before, { at: now, kind: "deferred", until, detail: reason }];
          const move: Move = {
            run,
            status: "deferred",
            reason,
            charged: true,
            deferred: { by: "limit", until },
            steps,
          };
          return settle(row, jobs, { ...claim, kind: "snooze", delayMs: waitMs, reason }, move);
        }
      }
      const attempts = row.attempts + 1;
      const steps: Move["steps"] = [...before, { at: now, kind: "attempt", attempt: attempts }];
      const firstAttemptAt = row.first_attempt_at ?? now;
      const from = rows.move(row, { run, status: "sending", charged: true, attempts, firstAttemptAt, steps });
      return { kind: "go", attempt: attempts, failures: row.failures, from };
    },

    finish(input, jobs) {
      const row = open(input, jobs);
      if (row === undefined) return REFUSED;
      const { settlement, move } = outcomeOf(row, input, jobs.now);
      return settle(row, jobs, settlement, move);
    },

    turnAway(input, jobs) {
      const { run, claim, delayMs, why, deadlineMs } = input;
      const { now } = jobs;
      const row = open(input, jobs);
      if (row === undefined) return REFUSED;
      const before = lostOutcome(row, now);
      const late = pastDeadline(row, now, deadlineMs);
      if (late !== undefined) return settle(row, jobs, complete(claim), ended(run, "dead", late, now, before));
      const until = now + Math.ceil(delayMs);
      const turnedAway = row.turned_away + 1;
      const times = turnedAway === 1 ? "" : `, turned away ${turnedAway} times`;
      const reason = `${why}${times}`;
      // One step for all the times in a row: a provider may be away for days.
      const steps: Move["steps"] = [...before, { at: now, kind: "deferred", until, detail: reason }];
      const replacesLast = turnedAway > 1;
      const move: Move = { run, status: "deferred", reason, deferred: { by: "breaker", until }, turnedAway, steps };
      return settle(row, jobs, { ...claim, kind: "snooze", delayMs: until - now, reason }, { ...move, replacesLast });
    },

    close(input, jobs) {
      const { run, claim, to, reason } = input;
      const row = open(input, jobs);
      if (row === undefined) return REFUSED;
      const move = ended(run, to, reason, jobs.now, lostOutcome(row, jobs.now));
      return settle(row, jobs, complete(claim), move);
    },
  };
}

function outcomeOf(
  row: NotificationRow,
  { run, claim, outcome, deadlineMs }: FinishInput,
  now: number,
): { readonly settlement: Settlement; readonly move: Move } {
  const { durationMs } = outcome;
  const facts = { at: now, attempt: row.attempts, durationMs };
  switch (outcome.kind) {
    case "delivered": {
      const steps: Move["steps"] = [{ ...facts, kind: "delivered", detail: outcome.answer }];
      return { settlement: complete(claim), move: { run, status: "delivered", steps } };
    }
    case "interrupted": {
      const detail = "stopped in the middle: whether it was taken isn't known";
      const steps: Move["steps"] = [{ ...facts, kind: "unknown", detail }];
      return { settlement: { ...claim, kind: "release" }, move: { run, status: "queued", steps } };
    }
    case "failed": {
      const failures = row.failures + 1;
      const verdict = verdictOn(row, outcome, failures, now, deadlineMs);
      const failed: HistoryEntry = { ...facts, kind: "failed", until: verdict.until, detail: outcome.error };
      if (verdict.until === undefined)
        return {
          settlement: complete(claim),
          move: { failures, ...ended(run, "dead", verdict.reason, now, [failed]) },
        };
      const retryInMs = verdict.until - now;
      return {
        settlement: { ...claim, kind: "fail", error: outcome.error, retryInMs },
        move: { run, status: "queued", reason: outcome.error, failures, steps: [failed] },
      };
    }
    default:
      return outcome satisfies never;
  }
}

/** When it is tried again, or why not. */
function verdictOn(
  row: NotificationRow,
  { error, retryInMs, permanent }: Outcome & { readonly kind: "failed" },
  failures: number,
  now: number,
  deadlineMs: number,
): { readonly until: number } | { readonly until?: undefined; readonly reason: string } {
  if (permanent) return { reason: error };
  if (retryInMs === undefined) return { reason: `failed ${failures} times, at last with: ${error}` };
  const until = now + Math.ceil(retryInMs);
  if (until < (row.first_attempt_at ?? now) + deadlineMs) return { until };
  return { reason: `the next attempt would come after the deadline; the last one ended with: ${error}` };
}

function ended(
  run: number,
  status: "dropped" | "dead",
  reason: string,
  now: number,
  before: readonly HistoryEntry[],
): Move {
  return { run, status, reason, steps: [...before, { at: now, kind: status, detail: reason }] };
}

/** An attempt without an outcome: the process that made it died, or lost its lease. */
export function lostOutcome(row: NotificationRow, now: number): readonly HistoryEntry[] {
  if (row.status !== "sending") return [];
  const detail = "the dispatcher died in the middle: whether it was taken isn't known";
  return [{ at: now, kind: "unknown", attempt: row.attempts, detail }];
}

/**
 * Its turn came while nobody could take it. The turns of one user that were missed together must not be made up for
 * all at once, which would be a second burst, so each takes a new one; a short delay is no miss.
 */
function missedItsTurn({ deferred_by: by, until }: NotificationRow, now: number, perMs: number): boolean {
  return by === "limit" && until !== null && now > until + perMs;
}

function pastDeadline(row: NotificationRow, now: number, deadlineMs: number): string | undefined {
  if (row.first_attempt_at === null || now < row.first_attempt_at + deadlineMs) return undefined;
  return `not delivered within ${deadlineMs / 1_000} s of the first attempt`;
}

function complete(claim: Claim): Settlement {
  return { ...claim, kind: "complete" };
}
