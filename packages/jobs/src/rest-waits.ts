/** Who waits for a worker to have nothing to do, or for its queue to be empty. */
import { ClosedError, type Clock, type WaitOptions } from "sluice";
import { checkWait, grantAll, WaitList } from "sluice/internal";

/** `idle`: it has nothing to do now · `drained`: nor will it have, unless jobs are added. */
export type Rest = "busy" | "idle" | "drained";

export class RestWaits {
  // I1  who waits is let go by the first `tell` that finds it so: what the worker knew before may be out of date
  readonly #clock: Clock;
  readonly #now: () => Rest;
  readonly #idle = new WaitList<void>();
  readonly #drained = new WaitList<void>();
  #isClosed = false;

  /** `now` says what the worker is at. */
  constructor(clock: Clock, now: () => Rest) {
    this.#clock = clock;
    this.#now = now;
  }

  get size(): number {
    return this.#idle.size + this.#drained.size;
  }

  /** Whether somebody wants to know if the queue is empty. */
  get wantsDrained(): boolean {
    return this.#drained.size > 0;
  }

  /** With a `timeoutMs` of 0, what the worker knows decides. */
  wait(rest: "idle" | "drained", options: WaitOptions): Promise<void> {
    try {
      checkWait(options);
      if (this.#isClosed) throw new ClosedError("worker");
      const line = rest === "idle" ? this.#idle : this.#drained;
      if (options.timeoutMs !== 0) return line.wait(options, this.#clock);
      const now = this.#now();
      if (now !== "drained" && now !== rest) line.refuseHaste(options);
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** After each change. */
  tell(): void {
    if (this.size === 0) return;
    const now = this.#now();
    if (now === "busy") return;
    grantAll(this.#idle);
    if (now === "drained") grantAll(this.#drained);
  }

  /** It will not look again, so that nobody can know. */
  close(): void {
    this.#isClosed = true;
    for (const line of [this.#idle, this.#drained]) line.rejectAll(new ClosedError("worker"));
  }
}
