/** What happens to the primitives, told as it happens. While nobody listens it costs one comparison. */
import { checkFunction } from "../internal/check.ts";
import { Emitter } from "../internal/emitter.ts";
import { setNotice } from "../internal/probe.ts";
import { type Subject, subjectOf } from "./subject.ts";

/**
 * `rejected`: a caller was turned away, because it was full or closed · `dropped`: an item or a call was given up for
 * another · `timed-out`, `aborted`: a wait ended so · `closed`: it takes nothing new from now on · `failed`: something
 * failed that no caller will hear of · `stalled`: waits for each other, found by `enable` · `raised`, `cleared`: an alarm.
 */
export type EventName =
  | "rejected"
  | "dropped"
  | "timed-out"
  | "aborted"
  | "closed"
  | "failed"
  | "stalled"
  | "raised"
  | "cleared";

export interface ObservedEvent {
  readonly name: EventName;
  readonly subject: Subject;
  /** The error of `rejected` and `failed`, what `dropped` gave up, the report of `stalled`, the alarm of `raised` and `cleared`. */
  readonly detail: unknown;
}

const emitter = new Emitter<ObservedEvent>();
let pending: ObservedEvent[] = [];

/**
 * Calls `listener` for each event from now on, in the order in which they happened, once the code that was running has
 * ended: a listener cannot get in the way of what it hears of. One that throws is the runtime's unhandled rejection and
 * nobody else's trouble. Returns how to stop.
 */
export function onEvent(listener: (event: ObservedEvent) => void): () => void {
  checkFunction("listener", listener);
  const earlier = new Set(pending); // of this turn, and not told yet
  const stop = emitter.add((event) => {
    if (!earlier.delete(event)) listener(event);
  });
  setNotice(tell);
  return () => {
    stop();
    if (emitter.size === 0) setNotice(undefined);
  };
}

function tell(name: EventName, about: object, detail?: unknown): void {
  tellOf(name, subjectOf(about), detail);
}

/** As `tell`, for what is known by its kind and name alone. */
export function tellOf(name: EventName, subject: Subject, detail: unknown): void {
  if (emitter.size === 0) return;
  pending.push({ name, subject, detail });
  if (pending.length === 1) queueMicrotask(flush);
}

function flush(): void {
  const events = pending;
  pending = [];
  for (const event of events) emitter.emit(event);
}
