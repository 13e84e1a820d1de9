/** What a worker tells its user. What these functions throw or reject with gets in nobody's way. */
import type { DeadJob } from "./job.ts";
import type { Run } from "./run.ts";
import type { Settlement } from "./store.ts";
import type { WorkerErrorContext, WorkerOptions } from "./worker-options.ts";

export type Failing = Extract<Settlement, { readonly kind: "fail" }>;

export interface HooksOptions extends Pick<WorkerOptions, "onFailure" | "onDead"> {
  readonly onError: NonNullable<WorkerOptions["onError"]>;
}

export class Hooks {
  readonly #queue: string;
  readonly #options: HooksOptions;

  constructor(queue: string, options: HooksOptions) {
    this.#queue = queue;
    this.#options = options;
  }

  /** An attempt has failed, and that is saved: the job waits for the next one, or is dead. */
  failed({ id, job, error }: Run, { error: reason, retryInMs }: Failing): void {
    const { onFailure, onDead } = this.#options;
    const { queue, payload, attempt: attempts, maxAttempts } = job;
    const isDead = retryInMs === undefined || attempts >= maxAttempts;
    this.#call(onFailure, id, error, { job, retryInMs: isDead ? undefined : retryInMs });
    if (isDead) this.#call(onDead, id, { id, queue, payload, state: "dead", attempts, reason });
  }

  /** Crashes have ended these. */
  ended(jobs: readonly DeadJob[]): void {
    for (const job of jobs) this.#call(this.#options.onDead, job.id, job);
  }

  error(error: unknown, during: WorkerErrorContext["during"], id?: string): void {
    try {
      this.#options.onError(error, { queue: this.#queue, during, id });
    } catch (reason) {
      console.error(reason); // an error of the user's own must not stop the worker
    }
  }

  #call<News extends unknown[]>(hook: ((...news: News) => unknown) | undefined, id: string, ...news: News): void {
    if (hook === undefined) return;
    new Promise((resolve) => resolve(hook(...news))).catch((error: unknown) => this.error(error, "hook", id));
  }
}
