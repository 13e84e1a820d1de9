/**
 * The promise of a child of a group. It knows whether anybody has looked at it: a failure that neither its own promise
 * nor the group has told to anybody must not vanish. `await` and `then` take a turn or two longer for it.
 */
export class Child<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise; // what `then` gives is a plain promise
  }

  isLookedAt = false;
  /** In the order of start, from 0; -1 until then. */
  index = -1;
  startedAt = 0;
  readonly #resolve: Settle; // of `unknown`, or a `Child<T>` would be no `Child<unknown>`
  readonly #reject: Settle;

  constructor() {
    let settle: readonly Settle[] = [];
    super((...both) => void (settle = both as typeof settle));
    [this.#resolve, this.#reject] = settle as [Settle, Settle];
  }

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isLookedAt = true;
    return super.then(onFulfilled, onRejected);
  }

  resolve(value: T): void {
    this.#resolve(value);
  }

  /** `isReported`: somebody is told of it in any case, so that it is no unhandled rejection. */
  reject(reason: unknown, isReported: boolean): void {
    if (isReported) void super.then(undefined, nothing);
    this.#reject(reason);
  }
}

function nothing(): void {}

type Settle = (value: unknown) => void;

/** Whether it is how a call says that it was ended by this signal. Node has errors of its own for that. */
export function isEcho(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted !== true) return false;
  return Object.is(error, signal.reason) || (error instanceof Error && error.name === "AbortError");
}
