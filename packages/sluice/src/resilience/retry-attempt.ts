/** What an attempt is told. */
import { Relay } from "../clock/relay.ts";
import { keepModel } from "../internal/model.ts";
import type { RunContext } from "../policy.ts";
import type { RetryContext } from "./retry-options.ts";

export class Attempt implements RetryContext {
  readonly attempt: number;
  /** The key, or the first attempt, which knows it. */
  #key: string | Attempt | undefined;
  /** What ends it, if nobody does so by `end`: until it has ended. */
  #around: RunContext | undefined;
  #relay: Relay | undefined;
  #controller: AbortController | undefined;

  constructor(attempt: number, key?: string | Attempt, around?: RunContext) {
    this.attempt = attempt;
    this.#key = key;
    this.#around = around;
    this.#relay = undefined;
    this.#controller = undefined;
  }

  /** Made when an attempt first asks for it, as is the signal: both would be most of what a call costs. */
  get idempotencyKey(): string {
    const key = (this.#key ??= crypto.randomUUID());
    return typeof key === "string" ? key : key.idempotencyKey;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      const around = this.#around?.signal;
      if (around?.aborted === true) this.end(around.reason);
      else if (around !== undefined) this.#relay = new Relay(this, around);
    }
    return this.#controller.signal;
  }

  next(): Attempt {
    return new Attempt(this.attempt + 1, typeof this.#key === "object" ? this.#key : this);
  }

  onAbort(reason: unknown): void {
    this.end(reason);
  }

  end(reason: unknown): void {
    this.leave();
    (this.#controller ??= new AbortController()).abort(reason);
  }

  /** What is around it ends it no more. */
  leave(): void {
    this.#around = undefined;
    this.#relay?.unwatch();
  }
}

keepModel(new Attempt(1));
