/** What the main thread asks of the procedures, and what they answer. All of it is copied between the threads. */
import type { Claim } from "@sluice/jobs";
import type { JobsInTransaction } from "@sluice/jobs/sqlite";
import type { NotificationStatus } from "../model.ts";
import type { Round } from "./queues.ts";

/** Every procedure by name. */
export interface Calls {
  accept(input: AcceptInput): AcceptAnswer;
  expand(input: ExpandInput): ExpandAnswer;
  abandon(input: AbandonInput): boolean;
  begin(input: BeginInput): BeginAnswer;
  finish(input: FinishInput): Change | Refused;
  turnAway(input: TurnAwayInput): Change | Refused;
  close(input: CloseInput): Change | Refused;
  bury(input: BuryInput): boolean;
  redrive(input: RedriveInput): number;
  prune(input: PruneInput): PruneAnswer;
}

/** The same as the writer's thread runs them. */
export type Procedures = {
  readonly [K in keyof Calls]: (input: Parameters<Calls[K]>[0], jobs: JobsInTransaction) => ReturnType<Calls[K]>;
};

export interface AcceptInput {
  readonly capacity: number;
  readonly events: readonly AcceptedEvent[];
}

export interface AcceptedEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string | undefined;
  readonly time: string | undefined;
  /** JSON. */
  readonly data: string;
}

/** One answer per event, true for a new one; undefined, and nothing written, when there is no room for all of them. */
export type AcceptAnswer = readonly boolean[] | undefined;

export interface ExpandInput {
  readonly run: number;
  readonly claim: Claim;
  readonly event: number;
  readonly planned: readonly PlannedRow[];
}

export interface PlannedRow {
  readonly id: string;
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly template: string;
  readonly overLimit: "defer" | "drop";
}

/** How many notifications are new. */
export type ExpandAnswer = { readonly kind: "expanded"; readonly created: number } | Refused;

export interface AbandonInput {
  /** Left out if the job has ended already. */
  readonly claim: Claim | undefined;
  readonly event: number;
  readonly reason: string;
}

/** The claim doesn't hold any more, so nothing was changed. */
export interface Refused {
  readonly kind: "refused";
}

/** A notification has moved. */
export interface Change {
  readonly kind: "changed";
  readonly to: NotificationStatus;
  /** Where it was before, if this run had put it there. */
  readonly from: NotificationStatus | undefined;
  readonly reason: string | undefined;
}

/** What every call about one attempt at a notification names. */
export interface Attempting extends Round {
  readonly run: number;
  readonly claim: Claim;
}

export interface BeginInput extends Attempting {
  readonly perUser: { readonly count: number; readonly perMs: number };
  readonly deadlineMs: number;
}

export type BeginAnswer =
  | {
      readonly kind: "go";
      readonly attempt: number;
      /** Bad outcomes so far. */
      readonly failures: number;
      readonly from: NotificationStatus | undefined;
    }
  | Change
  | Refused;

export interface FinishInput extends Attempting {
  readonly outcome: Outcome;
  readonly deadlineMs: number;
}

export type Outcome =
  | { readonly kind: "delivered"; readonly durationMs: number; readonly answer: string }
  /** Dead if it is permanent, if no retry is left (`retryInMs` undefined), or if that would be past the deadline. */
  | {
      readonly kind: "failed";
      readonly durationMs: number;
      readonly error: string;
      readonly permanent: boolean;
      readonly retryInMs: number | undefined;
    }
  /** The dispatcher stopped in the middle: whether the provider took it isn't known. */
  | { readonly kind: "interrupted"; readonly durationMs: number };

export interface TurnAwayInput extends Attempting {
  readonly delayMs: number;
  readonly why: string;
  readonly deadlineMs: number;
}

export interface CloseInput extends Attempting {
  readonly to: "dropped" | "dead";
  readonly reason: string;
}

export interface BuryInput extends Round {
  readonly run: number;
  readonly reason: string;
}

/** Which dead notifications; all that is given must hold. */
export interface DeadFilter {
  readonly ids?: readonly string[] | undefined;
  readonly user?: string | undefined;
  readonly channel?: string | undefined;
  readonly rule?: string | undefined;
}

export interface RedriveInput {
  readonly run: number;
  readonly filter: DeadFilter;
  readonly max: number;
}

export interface PruneInput {
  /** Events accepted before this instant go, with their notifications, once all of those are delivered or dropped. */
  readonly before: number;
  /** Looks at no event up to this one. */
  readonly after: number;
  /** Events to look at. */
  readonly max: number;
}

export interface PruneAnswer {
  /** The last event that was old enough to be looked at; `after` if there was none. */
  readonly last: number;
  /** Whether there may be more. */
  readonly more: boolean;
}
