/** A notification's history, for people. */
import type { HistoryEntry, NotificationHistory } from "../model.ts";
import { seconds } from "./numbers.ts";

export function historyText({ id, event, user, channel, rule, status, reason, entries }: NotificationHistory): string {
  const why = reason === undefined ? "" : `: ${reason}`;
  return [
    `${id}  ${status}${why}`,
    `  event    ${event.type} ${event.id} of ${event.source}`,
    `  to       ${user} over ${channel}, by rule ${rule}`,
    "",
    ...entries.map(entryText),
  ].join("\n");
}

function entryText({ at, kind, attempt, until, durationMs, detail }: HistoryEntry): string {
  const parts = [
    attempt === undefined ? undefined : `attempt ${attempt}`,
    durationMs === undefined ? undefined : `after ${seconds(durationMs)}`,
    until === undefined ? undefined : `${kind === "failed" ? "next" : "not before"} ${new Date(until).toISOString()}`,
    detail,
  ];
  const text = parts.filter((part) => part !== undefined).join(", ");
  return `  ${new Date(at).toISOString()}  ${kind.padEnd(9)}  ${text}`.trimEnd();
}
