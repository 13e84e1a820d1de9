/**
 * The payment service over HTTP. What an answer that never came meant is unknown: it is asked again with the same key,
 * and answers as it did the first time.
 */
import { CircuitBreaker, fetchPolicy, HttpStatusError, type Policy, type PolicyFetch } from "sluice";
import type { Order } from "./order.ts";

export interface PaymentsOptions {
  readonly url: string;
  /** For one answer. @default 5_000 */
  readonly timeoutMs?: number;
  /** @default one that opens after five failures in a row, for ten seconds */
  readonly breaker?: Policy;
}

export class Payments {
  readonly #url: string;
  readonly #fetch: PolicyFetch;

  constructor({ url, timeoutMs = 5_000, breaker }: PaymentsOptions) {
    this.#url = url;
    this.#fetch = fetchPolicy({
      retries: 0, // those of the job, which outlive the process
      attemptTimeoutMs: timeoutMs,
      around: breaker ?? new CircuitBreaker({ cooldownMs: 10_000 }),
    });
  }

  /** False if the card was declined. */
  async charge({ id, cents }: Order, signal: AbortSignal): Promise<boolean> {
    const response = await this.#post("charges", `charge-${id}`, cents, signal);
    if (response.status === 402) return false;
    checkDone(response);
    return true;
  }

  async refund({ id, cents }: Order, signal: AbortSignal): Promise<void> {
    checkDone(await this.#post("refunds", `refund-${id}`, cents, signal));
  }

  async #post(path: string, idempotencyKey: string, cents: number, signal: AbortSignal): Promise<Response> {
    const body = JSON.stringify({ cents });
    const response = await this.#fetch(`${this.#url}/${path}`, { method: "POST", body, idempotencyKey, signal });
    await response.text(); // gives its connection back
    return response;
  }
}

function checkDone(response: Response): void {
  if (!response.ok) throw new HttpStatusError(response);
}
