/** What one run has done, for people and as the JSON object that ends `--once --json`. */
import { SETTLED_STATUSES, type RunCounts, type Settled } from "../dispatch/run-counts.ts";
import { count, seconds, share } from "./numbers.ts";

/** `notifications = delivered + deferred + dropped + dead`: those whose state this run has changed. */
export interface Summary {
  /** Newly accepted. */
  readonly events: number;
  readonly duplicates: number;
  readonly notifications: number;
  readonly delivered: number;
  readonly deferred: number;
  readonly dropped: number;
  readonly dead: number;
  /** Attempts after a notification's first. */
  readonly retried: number;
  readonly durationMs: number;
}

export function summaryOf(counts: RunCounts, durationMs: number): Summary {
  return {
    events: counts.events,
    duplicates: counts.duplicates,
    notifications: counts.notifications,
    delivered: counts.count("delivered"),
    deferred: counts.count("deferred"),
    dropped: counts.count("dropped"),
    dead: counts.count("dead"),
    retried: counts.retried,
    durationMs: Math.round(durationMs),
  };
}

export function summaryText(counts: RunCounts, durationMs: number): string {
  const { events, duplicates, notifications, retried } = summaryOf(counts, durationMs);
  const rate = durationMs > 0 ? Math.round((notifications * 1_000) / durationMs) : 0;
  const lines = [
    ["events", count(events), duplicates > 0 ? `and ${count(duplicates)} that were known already` : ""],
    ["notifications", count(notifications), `in ${seconds(durationMs)}, ${count(rate)} a second`],
    ...SETTLED_STATUSES.map((status) => [`  ${status}`, count(counts.count(status)), detailOf(counts, status)]),
    ["retried", count(retried), ""],
    ...(counts.failedEvents > 0 ? [["failed events", count(counts.failedEvents), "see the log"]] : []),
  ];
  const width = Math.max(...lines.map(([, number = ""]) => number.length));
  return lines
    .map(([name = "", number = "", detail = ""]) => `${name.padEnd(15)}${number.padStart(width)}  ${detail}`.trimEnd())
    .join("\n");
}

function detailOf(counts: RunCounts, status: Settled): string {
  const total = counts.count(status);
  if (total === 0) return "";
  const parts =
    status === "dropped"
      ? [...counts.dropReasons()].map(([reason, times]) => `${count(times)} ${reason}`)
      : counts
          .channels()
          .map((channel) => [channel, counts.count(status, channel)] as const)
          .filter(([, times]) => times > 0)
          .map(([channel, times]) => `${channel} ${count(times)}`);
  return `${share(total, counts.notifications)}: ${parts.join(", ")}`;
}
