export interface Semaphore {
  /** Resolves when a permit is the caller's. */
  acquire(): Promise<unknown>;
  release(): void;
  /** Calls `fn` with a permit. */
  use<R>(fn: () => Promise<R>): Promise<R>;
}

export type MakeSemaphore = (permits: number) => Semaphore;

export class CountingSemaphore implements Semaphore {
  readonly #permits: number;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(permits: number) {
    this.#permits = this.#free = permits;
  }

  async acquire(): Promise<void> {
    if (this.#free > 0) this.#free -= 1; // no await since the look
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next(); // handed over, never counted: a newcomer finds none
    else this.#free = Math.min(this.#permits, this.#free + 1);
  }

  async use<R>(fn: () => Promise<R>): Promise<R> {
    await this.acquire();
    try {
      return await fn();
    } finally {
      this.release();
    }
  }
}
