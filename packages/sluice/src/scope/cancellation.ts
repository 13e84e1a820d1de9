/**
 * Whether a group has been cancelled, and why. The signal is made when somebody first asks for it: for children that
 * have no use for one, it would be most of what their group costs.
 */
export class Cancellation {
  // I1  once cancelled, the reason never changes, and the signal has aborted with it
  isCancelled = false;
  #controller: AbortController | undefined;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** The `reason` of the signal. */
  get reason(): unknown {
    return this.signal.reason;
  }

  /** Nothing if it has been already. */
  cancel(reason: unknown): void {
    if (this.isCancelled) return;
    this.#controller ??= new AbortController();
    this.isCancelled = true;
    this.#controller.abort(reason);
  }

  throwIfCancelled(): void {
    if (this.isCancelled) throw this.reason;
  }

  /** Whether it is how a child says that it was ended by this. */
  isEcho(error: unknown): boolean {
    return this.isCancelled && isEcho(error, this.signal);
  }
}

/** Whether it is how a call says that it was ended by this signal. Node has errors of its own for that. */
export function isEcho(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted !== true) return false;
  try {
    return Object.is(error, signal.reason) || (error as { name?: unknown } | null | undefined)?.name === "AbortError";
  } catch {
    return false; // it is anybody's, and may have a getter that throws
  }
}

/** Keeps the rest of it from the children. */
export class CancellationContext {
  readonly #cancellation: Cancellation;

  constructor(cancellation: Cancellation) {
    this.#cancellation = cancellation;
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }
}
