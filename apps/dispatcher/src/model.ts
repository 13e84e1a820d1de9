/** The words the dispatcher is built of. */
import type { Json } from "@sluice/jobs";

/** A CloudEvent, as far as the dispatcher reads it. `source` and `id` together name it. */
export interface Event {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string | undefined;
  /** RFC 3339. */
  readonly time?: string | undefined;
  readonly data: Json;
}

export interface Accepted {
  readonly outcome: "accepted" | "duplicate";
}

/** Where intake hands events over. */
export interface EventSink {
  /** All of them durable, or none and a rejection; `IntakeFullError` when there is no room. */
  accept(events: readonly Event[]): Promise<Accepted[]>;
}

/** Too many events are accepted and not yet expanded. */
export class IntakeFullError extends Error {
  override readonly name = "IntakeFullError";
  readonly code = "INTAKE_FULL";
  readonly limit: number;
  readonly retryAfterMs: number;

  constructor(limit: number, retryAfterMs: number) {
    super(`${limit} events wait to be expanded already`);
    this.limit = limit;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface User {
  readonly id: string;
  readonly email?: string | undefined;
  readonly webhook?: { readonly url: string; readonly secret: string } | undefined;
  readonly roles: readonly string[];
  readonly repositories: readonly string[];
}

/** One notification that a rule asks for: who, over which channel, and what happens above the user's limit. */
export interface Planned {
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly template: string;
  readonly overLimit: "defer" | "drop";
}

/** What a template made of an event; the keys are the channel's own (`subject`, `text`, `html`; `body`). */
export type Content = Readonly<Record<string, string>>;

export type NotificationStatus = "queued" | "deferred" | "sending" | "delivered" | "dropped" | "dead";

export interface HistoryEntry {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly kind:
    | "accepted"
    | "matched"
    /** Over the user's limit, or turned away by the breaker: not before `until`. */
    | "deferred"
    /** The intent: what follows if it is missing is not known. */
    | "attempt"
    | "delivered"
    | "failed"
    /** The process died between intent and outcome. */
    | "unknown"
    | "dropped"
    | "dead"
    | "redriven";
  readonly attempt?: number | undefined;
  readonly until?: number | undefined;
  readonly durationMs?: number | undefined;
  /** The provider's answer, or why. */
  readonly detail?: string | undefined;
}

export type NotificationSummary = Omit<NotificationHistory, "event" | "entries">;

export interface NotificationHistory {
  /** Also its Message-ID's local part, and its webhook-id. */
  readonly id: string;
  readonly event: { readonly id: string; readonly source: string; readonly type: string };
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly status: NotificationStatus;
  readonly reason: string | undefined;
  readonly entries: readonly HistoryEntry[];
}
