import { dispose } from "../internal/dispose.ts";
import { probe } from "../internal/probe.ts";

/** One resource, lent. Giving it back twice is the same as giving it back once. */
export interface Lease<R> extends Disposable {
  /** To be used until the release, and not after it. */
  readonly resource: R;
  release(): void;
}

/** What a wait brings: whether a `create` was called for it. */
export interface Asking {
  hasAsked: boolean;
}

/** What a pool knows of one resource. */
export class PoolEntry<R> {
  readonly resource: R;
  /** From then on it is lent no more. */
  readonly retireAt: number;
  /** When it came back last, or was made. */
  idleAt: number;
  /** It is not to be lent any more, whoever has it now. */
  isCondemned = false;

  constructor(resource: R, madeAt: number, lifetimeMs: number) {
    this.resource = resource;
    this.retireAt = madeAt + lifetimeMs;
    this.idleAt = madeAt;
  }
}

/** `wait` is that of the caller, if it had to wait for `pool`. */
export function lend<R>(
  entry: PoolEntry<R>,
  giveBack: (entry: PoolEntry<R>) => void,
  pool: object,
  wait: object | undefined,
): Lease<R> {
  const lease = new HeldLease(entry, giveBack);
  probe?.took(pool, lease, 1, wait);
  return lease;
}

class HeldLease<R> implements Lease<R> {
  readonly resource: R;
  #entry: PoolEntry<R> | undefined;
  readonly #giveBack: (entry: PoolEntry<R>) => void;

  constructor(entry: PoolEntry<R>, giveBack: (entry: PoolEntry<R>) => void) {
    this.resource = entry.resource;
    this.#entry = entry;
    this.#giveBack = giveBack;
  }

  release(): void {
    const entry = this.#entry;
    this.#entry = undefined;
    if (entry === undefined) return;
    probe?.gaveBack(this);
    this.#giveBack(entry);
  }

  [dispose](): void {
    this.release();
  }
}
