/** What one run of the dispatcher has newly accepted and moved. Of constant size, however long it runs. */
import type { NotificationStatus } from "../model.ts";
import type { Change } from "../storage/calls.ts";

/** Where a notification rests, for good or until its time comes. */
export type Settled = "delivered" | "deferred" | "dropped" | "dead";

export const SETTLED_STATUSES: readonly Settled[] = ["delivered", "deferred", "dropped", "dead"];

const MAX_REASONS = 50;

export class RunCounts {
  // I1  each notification that this run has moved counts once, where it rests now, and not at all while it doesn't; one that
  //     another process has redriven meanwhile counts once more
  events = 0;
  duplicates = 0;
  /** Attempts after a notification's first. */
  retried = 0;
  /** Calls that came after their claim was lost, and changed nothing. */
  refused = 0;
  /** Attempts that a stop has broken off. */
  interrupted = 0;
  /** How many events no rule could be applied to. */
  failedEvents = 0;
  readonly #resting = new Map<string, number>();
  readonly #dropReasons = new Map<string, number>();

  get notifications(): number {
    return SETTLED_STATUSES.reduce((sum, status) => sum + this.count(status), 0);
  }

  count(status: Settled, channel?: string): number {
    const channels = channel === undefined ? this.channels() : [channel];
    return channels.reduce((sum, name) => sum + (this.#resting.get(`${status} ${name}`) ?? 0), 0);
  }

  /** In alphabetical order. */
  channels(): readonly string[] {
    return [...new Set([...this.#resting.keys()].map((key) => key.slice(key.indexOf(" ") + 1)))].toSorted();
  }

  dropReasons(): ReadonlyMap<string, number> {
    return this.#dropReasons;
  }

  moved(channel: string, { from, to, reason }: Pick<Change, "from" | "to" | "reason">): void {
    if (isSettled(from)) this.#add(`${from} ${channel}`, -1);
    if (isSettled(to)) this.#add(`${to} ${channel}`, 1);
    if (to !== "dropped" || reason === undefined) return;
    const known = this.#dropReasons.has(reason) || this.#dropReasons.size < MAX_REASONS;
    const key = known ? reason : "other reasons";
    this.#dropReasons.set(key, (this.#dropReasons.get(key) ?? 0) + 1);
  }

  #add(key: string, by: 1 | -1): void {
    this.#resting.set(key, (this.#resting.get(key) ?? 0) + by);
  }
}

function isSettled(status: NotificationStatus | undefined): status is Settled {
  return status !== undefined && (SETTLED_STATUSES as readonly string[]).includes(status);
}
