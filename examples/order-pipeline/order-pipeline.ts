/**
 * From an order to the customer who hears what became of it. Nothing is promised before an order has been accepted, so
 * that part is a pipeline in memory; from then on each step is a durable job, done again until it is known to be done.
 */
import { type Handler, type Job, type JobContext, type JobRecord, Jobs, snooze, Worker } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import { CircuitOpenError, pipeline, shutdown, type ShutdownReport } from "sluice";
import { InvalidOrderError, type Order, type OrderState, validate } from "./order.ts";
import type { OrderBook, Queues, Step } from "./order-book.ts";
import type { Payments } from "./payments.ts";

export type Notify = (
  order: Order & { readonly state: OrderState },
  context: { readonly idempotencyKey: string; readonly signal: AbortSignal },
) => Promise<unknown>;

export interface OrderPipelineOptions {
  readonly store: SqliteStore;
  readonly book: OrderBook;
  readonly payments: Payments;
  /** Tells the customer. May be told twice of one order, with the same key. */
  readonly notify: Notify;
  /** Between the attempts at a step: from up to `baseMs` to up to `maxMs`. @default 1_000 and 60_000 */
  readonly retry?: { readonly baseMs: number; readonly maxMs: number };
}

export interface Intake {
  readonly accepted: number;
  /** Of those that had been accepted before. */
  readonly known: number;
  readonly refused: number;
}

/** At once, of each step; each makes work for those after it alone. */
const CONCURRENCY = { charge: 20, allocate: 1, refund: 5, notify: 20 } satisfies Record<Step, number>;
const STEPS = Object.keys(CONCURRENCY) as Step[];
const MAX_SNOOZE_MS = 30_000;

export class OrderPipeline {
  readonly #options: OrderPipelineOptions;
  readonly #jobs: Jobs<Queues>;
  readonly #workers = new Map<Step, Worker<Queues[Step]>>();
  readonly #stop = shutdown({ timeoutMs: 6_000 }); // the platform grants more: Docker 10 s

  constructor(options: OrderPipelineOptions) {
    this.#options = options;
    this.#jobs = new Jobs(options.store);
  }

  start(): void {
    const { store, retry } = this.#options;
    for (const step of STEPS) {
      const options = { concurrency: CONCURRENCY[step], retry, jobTimeoutMs: 30_000 };
      const worker = new Worker<Queues[Step]>(store, step, this.#handlerOf(step), options);
      this.#workers.set(step, this.#stop.add(step, worker));
      worker.start();
    }
  }

  /** Gives back what is under way: it goes on where it was, in this process or another. */
  stop(): Promise<ShutdownReport> {
    return this.#stop.stop();
  }

  /** Resolves when all are accepted, durably, or refused. */
  async take(orders: Iterable<unknown> | AsyncIterable<unknown>, signal?: AbortSignal): Promise<Intake> {
    const { book } = this.#options;
    const counts = { accepted: 0, known: 0, refused: 0 };
    const refuse = (item: unknown, reason: string): void => {
      book.refuse(item, reason);
      counts.refused += 1;
    };
    await pipeline(orders, { signal, onDeadLetter: ({ item, error }) => refuse(item, (error as Error).message) })
      .stage("validate", validate, { buffer: 100, onError: pathOf })
      .stage("accept", (order) => book.accept(order), { buffer: 100, onError: pathOf })
      .forEach((isNew) => void (counts[isNew ? "accepted" : "known"] += 1));
    return counts;
  }

  /** Steps that have failed for good. What they belong to stays as it is until somebody has looked at it. */
  deadLetters(): Promise<JobRecord[]> {
    return this.#jobs.list({ states: ["dead", "quarantined"] }, { limit: 1_000 });
  }

  /** Has them tried again, with the same keys. */
  async redrive(): Promise<number> {
    const { redriven } = await this.#jobs.redrive({ states: ["dead", "quarantined"] });
    return redriven;
  }

  /** Resolves when nothing is left to do but for the dead letters. Begins with the step that makes work for the others. */
  async idle(signal?: AbortSignal): Promise<void> {
    for (const step of STEPS) await this.#workers.get(step)?.drain({ signal });
  }

  #handlerOf(step: Step): Handler<Queues[Step]> {
    return async (job, context) => {
      try {
        await this.#do(step, job, context);
        return undefined;
      } catch (error) {
        // Nobody was asked, so it was no attempt.
        if (!(error instanceof CircuitOpenError)) throw error;
        return snooze(Math.min(Math.max(error.retryAfterMs, 10), MAX_SNOOZE_MS), error.message);
      }
    };
  }

  async #do(step: Step, { payload }: Job<Queues[Step]>, context: JobContext): Promise<void> {
    const { book, payments, notify } = this.#options;
    const { signal, idempotencyKey } = context;
    const order = book.get(payload.order);
    if (step === "charge" && order.state === "accepted") {
      const isPaid = await payments.charge(order, signal);
      if (isPaid) book.move(order.id, "accepted", "charged", "allocate");
      else book.move(order.id, "accepted", "declined", "notify");
    } else if (step === "allocate") {
      book.allocate(order.id);
    } else if (step === "refund" && order.state === "unallocated") {
      await payments.refund(order, signal);
      book.move(order.id, "unallocated", "refunded", "notify");
    } else if (step === "notify") {
      await notify(order, { idempotencyKey, signal });
    }
  }
}

/** What is no order is set aside; what goes wrong with the book ends all. */
function pathOf(error: unknown): "dead-letter" | "fail" {
  return error instanceof InvalidOrderError ? "dead-letter" : "fail";
}
