import { CircuitOpenError, type Clock, type Policy, type Task, type WaitOptions } from "sluice";

/** As it is often written: calls that it turns away put off the end of the cooldown. Tests show what becomes of it. */
export class FaultyBreaker implements Policy {
  readonly #clock: Clock;
  readonly #cooldownMs: number;
  #failures = 0;
  #openedAt: number | undefined;

  constructor(cooldownMs: number, clock: Clock) {
    this.#cooldownMs = cooldownMs;
    this.#clock = clock;
  }

  async run<T>(fn: Task<T>, { signal }: WaitOptions = {}): Promise<T> {
    try {
      if (this.#openedAt !== undefined && this.#clock.now() - this.#openedAt < this.#cooldownMs)
        throw new CircuitOpenError(this.#cooldownMs);
      const value = await fn({ signal });
      this.#failures = 0;
      this.#openedAt = undefined;
      return value;
    } catch (error) {
      this.#failures += 1; // also for what it has just thrown itself: that is the fault
      if (this.#failures >= 3) this.#openedAt = this.#clock.now();
      throw error;
    }
  }
}
