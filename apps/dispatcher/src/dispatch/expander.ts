/** Turns an accepted event into its notifications, all of them in the transaction that ends the event's job. */
import type { ClaimedJob } from "@sluice/jobs";
import type { Logger } from "pino";
import type { Event, Planned } from "../model.ts";
import { plan, type RuleIndex } from "../rules/match.ts";
import type { Journal } from "./journal.ts";
import { enter } from "./phases.ts";
import type { RecentEvents } from "./recent-events.ts";

export interface ExpanderOptions {
  readonly rules: RuleIndex;
  readonly events: RecentEvents;
  readonly journal: Journal;
  readonly log: Logger;
}

export class Expander {
  readonly #options: ExpanderOptions;

  constructor(options: ExpanderOptions) {
    this.#options = options;
  }

  /** Settles the job itself. Rejects only if that fails. */
  async expand(job: ClaimedJob): Promise<void> {
    enter("claim");
    const { events, journal } = this.#options;
    const claim = { id: job.id, token: job.token };
    const n = Number(job.payload);
    const stored = await events.load(n);
    if (stored === undefined) {
      await journal.abandon(n, "the event is gone", claim);
      return;
    }
    const { event } = stored;
    const planned = this.#plan(n, event);
    if (typeof planned === "string") await journal.abandon(n, planned, claim);
    else await journal.expand(claim, n, event, planned);
  }

  /** Or why not. The same event always fails in the same way, so it isn't tried again. */
  #plan(n: number, event: Event): Planned[] | string {
    const { rules, log } = this.#options;
    try {
      return plan(event, rules);
    } catch (error) {
      log.error({ err: error, event: n, source: event.source, id: event.id }, "no rule can be applied to an event");
      return error instanceof Error ? error.message : String(error);
    }
  }
}
