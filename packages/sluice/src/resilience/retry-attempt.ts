/** What an attempt is told. */
import type { RetryContext } from "./retry-options.ts";

export class Attempt implements RetryContext {
  readonly attempt: number;
  readonly #first: Attempt;
  #idempotencyKey: string | undefined;
  #controller: AbortController | undefined;

  constructor(attempt: number, idempotencyKey?: string, first?: Attempt) {
    this.attempt = attempt;
    this.#idempotencyKey = idempotencyKey;
    this.#first = first ?? this;
  }

  /** Made when an attempt first asks for it, as is the signal: both would be most of what a call costs. */
  get idempotencyKey(): string {
    return (this.#first.#idempotencyKey ??= crypto.randomUUID());
  }

  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  next(): Attempt {
    return new Attempt(this.attempt + 1, undefined, this.#first);
  }

  end(reason: unknown): void {
    (this.#controller ??= new AbortController()).abort(reason);
  }
}
