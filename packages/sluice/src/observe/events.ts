/** What happens to the primitives, told as it happens. While nobody listens it costs one comparison. */
import { Emitter } from "../internal/emitter.ts";
import { type NoticeName, setNotice } from "../internal/probe.ts";
import { type Subject, subjectOf } from "./subject.ts";

/** `stalled`: a wait for what will not come, found by `enable` · `raised`, `cleared`: an alarm's threshold. */
export type EventName = NoticeName | "stalled" | "raised" | "cleared";

export interface ObservedEvent {
  readonly name: EventName;
  readonly subject: Subject;
  /** The error of `failed`, what was given up of `dropped`, the report of `stalled`, the alarm of the rest. */
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
  const stop = emitter.add(listener);
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
