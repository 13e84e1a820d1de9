import { ClosedError } from "../errors.ts";
import { dispose } from "../internal/dispose.ts";

/** A place in a queue, held without an item. What is put into it finds room; giving it back twice is as giving it back once. */
export interface Reservation<T, I extends object = object> extends Disposable {
  /**
   * Fills the place. True if the item is in, also if the queue was closed meanwhile; false if it has failed. The place
   * can't be filled twice, nor after its release: `ClosedError`. Bad options leave it held.
   */
  put(item: T, options?: I): boolean;
  /** Gives the place back, unless it was filled. */
  release(): void;
}

/** What a reservation is issued by. */
export interface PlaceKeeper<T, I> {
  readonly store: { enter(item: T, options: I | undefined): unknown };
  fillPlace(entry: unknown): boolean;
  vacate(): void;
}

export function issueReservation<T, I extends object>(keeper: PlaceKeeper<T, I>): Reservation<T, I> {
  return new HeldPlace(keeper);
}

class HeldPlace<T, I extends object> implements Reservation<T, I> {
  #keeper: PlaceKeeper<T, I> | undefined;

  constructor(keeper: PlaceKeeper<T, I>) {
    this.#keeper = keeper;
  }

  put(item: T, options?: I): boolean {
    const keeper = this.#keeper;
    if (keeper === undefined) throw new ClosedError("reservation");
    const entry = keeper.store.enter(item, options);
    this.#keeper = undefined;
    return keeper.fillPlace(entry);
  }

  release(): void {
    const keeper = this.#keeper;
    this.#keeper = undefined;
    keeper?.vacate();
  }

  [dispose](): void {
    this.release();
  }
}
