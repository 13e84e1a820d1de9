/** What an attempt is told. */
import type { RetryContext } from "./retry-options.ts";

export class Attempt implements RetryContext {
  /** One is always there, or a full garbage collection would forget their layout, and the code optimized for them. */
  static readonly sample: unknown = new Attempt(1, undefined);
  readonly attempt: number;
  /** The key, or the first attempt, which knows it. */
  #key: string | Attempt | undefined;
  #controller: AbortController | undefined;

  constructor(attempt: number, key: string | Attempt | undefined) {
    this.attempt = attempt;
    this.#key = key;
  }

  /** Made when an attempt first asks for it, as is the signal: both would be most of what a call costs. */
  get idempotencyKey(): string {
    const key = (this.#key ??= crypto.randomUUID());
    return typeof key === "string" ? key : key.idempotencyKey;
  }

  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  next(): Attempt {
    return new Attempt(this.attempt + 1, typeof this.#key === "object" ? this.#key : this);
  }

  end(reason: unknown): void {
    (this.#controller ??= new AbortController()).abort(reason);
  }
}
