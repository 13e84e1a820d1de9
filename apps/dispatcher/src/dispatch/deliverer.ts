/**
 * Delivers the notifications of one channel, one attempt for each claim of a job:
 *
 *     breaker of the provider ( budget of retries ( intent, durable → render → send, within its time limit → outcome ) )
 *
 * Nothing is repeated in here: a retry is the job's own, durable, and meets every policy anew. A refusal of the breaker
 * or of the budget costs neither an attempt nor a place in the user's limit.
 */
import type { ClaimedJob } from "@sluice/jobs";
import { backoffMs, CircuitOpenError, timeout, TimeoutError } from "sluice";
import type { Clock, KeyedCircuitBreaker, Policy, RetryBudget } from "sluice";
import { type Channel, type Receipt, SendError } from "../channels/channel.ts";
import type { Config } from "../config/config.ts";
import type { User } from "../model.ts";
import { type Renderer, RenderError } from "../rules/render.ts";
import type { Outcome } from "../storage/calls.ts";
import type { Reader, StoredNotification } from "../storage/reader.ts";
import { roundOf } from "../storage/queues.ts";
import { AttemptError } from "./attempt-error.ts";
import type { Delivery, Journal } from "./journal.ts";
import { enter } from "./phases.ts";
import type { RecentEvents } from "./recent-events.ts";

export interface DelivererOptions {
  readonly channel: Channel;
  readonly limits: Config["limits"];
  readonly users: ReadonlyMap<string, User>;
  readonly renderer: Renderer;
  readonly reader: Reader;
  readonly events: RecentEvents;
  readonly journal: Journal;
  /** By provider. */
  readonly breakers: KeyedCircuitBreaker;
  /** Of the channel. */
  readonly budget: RetryBudget;
  readonly clock: Clock;
  readonly random: (() => number) | undefined;
}

/** One notification on its way. */
interface Errand extends Delivery {
  readonly isRetry: boolean;
  readonly stored: StoredNotification;
  readonly user: User;
  readonly address: string;
  readonly signal: AbortSignal;
}

/** Before a provider whose trial is under way is asked again. */
const MIN_REST_MS = 1_000;

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #attemptTimeout: Policy;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#attemptTimeout = timeout(options.limits.attemptTimeoutMs, { clock: options.clock });
  }

  /** Settles the job itself. Rejects only if that fails. */
  async deliver(job: ClaimedJob, signal: AbortSignal): Promise<void> {
    enter("claim");
    const { channel, users, reader, journal, breakers } = this.#options;
    const claim = { id: job.id, token: job.token };
    const delivery: Delivery = { claim, ...roundOf(job.payload), channel: channel.name };
    const stored = reader.notification(delivery.notification);
    const user = stored === undefined ? undefined : users.get(stored.user);
    const address = user === undefined ? undefined : channel.addressOf(user);
    if (stored === undefined || user === undefined || address === undefined) {
      await journal.close(delivery, "dropped", `the user has no address for ${channel.name} any more`);
      return;
    }
    const provider = channel.providerOf(address);
    try {
      const isRetry = job.attempt > 1;
      await breakers.run(provider, () => this.#attempt({ ...delivery, isRetry, stored, user, address, signal }));
    } catch (error) {
      if (error instanceof CircuitOpenError)
        await journal.turnAway(delivery, `${provider} fails too often and is given a rest`, this.#restMs(error));
      else if (!(error instanceof AttemptError)) throw error;
    }
  }

  async #attempt(errand: Errand): Promise<void> {
    const { journal, clock, budget, channel } = this.#options;
    if (!errand.isRetry) budget.onCall();
    else if (!budget.trySpend()) {
      await journal.turnAway(errand, `too much of ${channel.name} is being tried again`, this.#patienceMs());
      throw new AttemptError("the budget of retries is used up", false);
    }
    const begun = await journal.begin(errand);
    if (begun.kind !== "go") throw new AttemptError("not begun", false);
    const startedAt = clock.now();
    const sent = await this.#send(errand).catch((error: unknown) => ({ error }));
    const durationMs = clock.now() - startedAt;
    if ("error" in sent) {
      const { error } = sent;
      await journal.finish(errand, this.#badOutcome(error, errand, begun.failures + 1, durationMs));
      throw new AttemptError(messageOf(error), isProviderFault(error), { cause: error });
    }
    await journal.finish(errand, { kind: "delivered", durationMs, answer: sent.answer });
  }

  async #send({ stored, user, address, signal }: Errand): Promise<Receipt> {
    const { channel, renderer, events } = this.#options;
    const event = (await events.load(stored.event))?.event;
    if (event === undefined) throw new SendError("its event is gone", { kind: "permanent", providerFault: false });
    const content = renderer.render(stored, event, user);
    enter("send");
    return this.#attemptTimeout.run(
      (context) => channel.send({ id: stored.id, user, address, content }, { signal: context.signal ?? signal }),
      { signal },
    );
  }

  #badOutcome(error: unknown, { signal }: Errand, failures: number, durationMs: number): Outcome {
    if (signal.aborted && error === signal.reason) return { kind: "interrupted", durationMs };
    const permanent = error instanceof RenderError || (error instanceof SendError && error.kind === "permanent");
    const retryInMs = permanent ? undefined : this.#retryInMs(error, failures);
    return { kind: "failed", durationMs, error: messageOf(error), permanent, retryInMs };
  }

  /** The provider's wish, if it is longer than our own patience. */
  #retryInMs(error: unknown, failures: number): number | undefined {
    const { limits, random } = this.#options;
    if (failures > limits.retries) return undefined;
    const ownMs = backoffMs(failures, { baseMs: limits.retryBaseMs, maxMs: limits.retryMaxMs }, random);
    return Math.max(ownMs, (error instanceof SendError && error.retryAfterMs) || 0);
  }

  /** Spread as well, and about as long as the budget looks back. */
  #patienceMs(): number {
    const { limits, random } = this.#options;
    return MIN_REST_MS + backoffMs(1, { baseMs: limits.retryMaxMs, maxMs: limits.retryMaxMs }, random);
  }

  /** Spread over a whole rest, so that those who wait for a provider don't all come back in one moment. */
  #restMs({ retryAfterMs }: CircuitOpenError): number {
    const { limits, random } = this.#options;
    const { cooldownMs } = limits.breaker;
    return Math.max(retryAfterMs, MIN_REST_MS) + backoffMs(1, { baseMs: cooldownMs, maxMs: cooldownMs }, random);
  }
}

function isProviderFault(error: unknown): boolean {
  return error instanceof TimeoutError || (error instanceof SendError && error.providerFault);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
