/**
 * What is dear to make, and what calls that follow each other closely can have one after the other: a timer, a listener.
 * It outlives the last of them by some turns of the microtask queue, so that a caller who goes on with the next, through
 * an async function or two, finds it there. No process is kept alive: microtasks are done before the event loop looks.
 */
export abstract class Lingering {
  // I1  #turnsLeft is above 0 exactly while a microtask of ours is queued that will look whether somebody came
  #turnsLeft = 0;

  /** Nobody needs it. */
  abstract get isIdle(): boolean;

  /** It has been idle for as long as it may. To be called twice must do no harm. */
  abstract close(): void;

  /** For whoever leaves it idle. With 0 turns it goes at once. */
  rest(turns: number): void {
    if (turns === 0) this.close();
    else {
      if (this.#turnsLeft === 0) void settled.then(this.#onTurn);
      this.#turnsLeft = turns;
    }
  }

  readonly #onTurn = (): void => {
    const turns = this.#turnsLeft - 1;
    this.#turnsLeft = 0;
    if (this.isIdle) this.rest(turns);
  };
}

export const LINGER_TURNS = 4;

const settled = Promise.resolve();
