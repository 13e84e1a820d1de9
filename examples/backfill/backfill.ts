/**
 * Sends each item of a long list to a service that allows so much at a time, and stops at the first error that trying
 * again would not mend. What it reports is enough to go on from there, after the cause has been seen to.
 */
import { type Agent, request } from "node:http";
import { type Clock, forEachLimit, type Random, retry, RetryBudget } from "sluice";

export interface BackfillOptions {
  /** An integer >= 1: below the tightest limit downstream, or the line moves to where nobody sees it. */
  readonly concurrency: number;
  /** Where the last run stopped. @default 0 */
  readonly from?: number;
  readonly signal?: AbortSignal;
  /** Told how many are done without a gap, from the start of the list: after each thousand items sent, and at the end. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface BackfillReport {
  /** Items that were sent in this run. */
  readonly sent: number;
  /** All items before this one have been sent: where the next run is to begin. */
  readonly next: number;
  /** Why it stopped before the end. */
  readonly error?: unknown;
}

/** `send` must be safe to repeat: an item after `next` may have been sent, and will be once more. */
export async function backfill<T>(
  items: readonly T[],
  send: (item: T, signal: AbortSignal) => Promise<unknown>,
  options: BackfillOptions,
): Promise<BackfillReport> {
  const { concurrency, from = 0, signal, onProgress, clock, random } = options;
  const progress = new Progress(from, items.length, onProgress);
  const policy = retry({
    retries: 4,
    baseMs: 50,
    maxMs: 2_000,
    budget: new RetryBudget({ ratio: 0.1, clock }),
    clock,
    random,
  });
  try {
    await forEachLimit(
      items.slice(from),
      concurrency,
      async (item, { index, signal: stop }) => {
        await policy.run((attempt) => send(item, attempt.signal), { signal: stop });
        progress.done(from + index);
      },
      { signal },
    );
    return progress.report();
  } catch (error) {
    return { ...progress.report(), error };
  }
}

/** Which items are done. They end in any order, but only what is done from the start on need not be done again. */
class Progress {
  // I1  all items before #next are done, #next isn't; of those after it, the ones in #ahead are
  readonly #total: number;
  readonly #onProgress: BackfillOptions["onProgress"];
  readonly #ahead = new Set<number>();
  #next: number;
  #sent = 0;

  constructor(from: number, total: number, onProgress: BackfillOptions["onProgress"]) {
    this.#next = from;
    this.#total = total;
    this.#onProgress = onProgress;
  }

  done(index: number): void {
    this.#ahead.add(index);
    while (this.#ahead.delete(this.#next)) this.#next += 1;
    this.#sent += 1;
    if (this.#sent % 1_000 === 0 || this.#next === this.#total) this.#onProgress?.(this.#next, this.#total);
  }

  report(): BackfillReport {
    return { sent: this.#sent, next: this.#next };
  }
}

/** What a service answered that isn't 2xx. `classifyError` knows by `status` whether to try again. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;

  constructor(status: number) {
    super(`the service answered ${status}`);
    this.status = status;
  }
}

/** Sends one item by HTTP; `agent` keeps as many connections as there are calls at a time. */
export function sendTo(url: string, agent: Agent): (item: number, signal: AbortSignal) => Promise<string> {
  return (item, signal) =>
    new Promise((resolve, reject) => {
      const call = request(`${url}/${item}`, { method: "PUT", agent, signal }, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.once("error", reject);
        response.once("end", () => {
          const { statusCode = 0 } = response;
          if (statusCode >= 200 && statusCode < 300) resolve(body);
          else reject(new HttpError(statusCode));
        });
      });
      call.once("error", reject);
      call.end();
    });
}
