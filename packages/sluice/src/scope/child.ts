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
    super(keepSettle);
    [this.#resolve, this.#reject] = kept as [Settle, Settle];
    kept = undefined; // or the last child of all would never be collected
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

let kept: readonly [resolve: unknown, reject: unknown] | undefined;

/** No closure for each child. */
function keepSettle(resolve: unknown, reject: unknown): void {
  kept = [resolve, reject];
}
