/** Sends batches by HTTP, as often as it takes or until it has taken too long. */
import { type Clock, fetchPolicy, HttpStatusError, type Random } from "sluice";
import type { SendBatch } from "./log-shipping.ts";

export interface PostOptions {
  /** By which the collector knows this process from all others: new for each start. */
  readonly source: string;
  /** How long the collector may take to answer. @default 5_000 */
  readonly attemptTimeoutMs?: number | undefined;
  /** When a batch is given up. @default 30_000 */
  readonly giveUpMs?: number | undefined;
  readonly baseMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

export function postTo(url: string, options: PostOptions): SendBatch {
  const { source, attemptTimeoutMs = 5_000, giveUpMs = 30_000, baseMs = 100, clock, random } = options;
  const post = fetchPolicy({
    attemptTimeoutMs,
    deadline: giveUpMs,
    retries: Infinity,
    baseMs,
    maxMs: 5_000,
    clock,
    random,
  });
  return async ({ number, records, lost }, signal) => {
    const response = await post(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-log-source": source, "x-log-lost": String(lost) },
      body: `[${records.join(",")}]`,
      idempotencyKey: `${source}/${number}`, // or a batch whose answer was lost would be there twice
      signal,
    });
    await response.body?.cancel();
    if (!response.ok) throw new HttpStatusError(response);
  };
}
