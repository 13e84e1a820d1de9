import type { Clock, TimerTask } from "../clock/clock.ts";
import { checkFunction, checkMs } from "../internal/check.ts";
import { tell } from "../internal/tell.ts";
import type { ActorOptions } from "./actor-options.ts";
import type { Turn } from "./turn.ts";

/** Tells of messages that take too long, with one timer for as many as fit into `slowMs`. */
export class SlowWatch<M> implements TimerTask {
  // I1  while a turn goes on that hasn't been told, a timer is set that fires at its limit or before
  count = 0;
  readonly #slowMs: number;
  readonly #onSlow: ActorOptions<M>["onSlow"];
  readonly #clock: Clock;
  #turn: Turn | undefined;
  #message: M | undefined;
  #isSet = false;

  constructor({ slowMs = Infinity, onSlow }: ActorOptions<M>, clock: Clock) {
    this.#slowMs = checkMs("slowMs", slowMs);
    if (onSlow !== undefined) checkFunction("onSlow", onSlow);
    this.#onSlow = onSlow;
    this.#clock = clock;
  }

  begin(turn: Turn, message: M): void {
    this.#turn = turn;
    this.#message = message;
    if (!this.#isSet) this.#set(this.#slowMs);
  }

  end(turn: Turn): void {
    if (this.#turn !== turn) return; // it has been told
    let ranMs = 0;
    try {
      ranMs = this.#clock.now() - turn.startedAt;
    } finally {
      if (ranMs < this.#slowMs) this.#turn = this.#message = undefined;
      else this.#tell(ranMs); // it kept the timer from firing
    }
  }

  onTimer(): void {
    this.#isSet = false;
    if (this.#turn === undefined) return;
    const ranMs = this.#clock.now() - this.#turn.startedAt;
    if (ranMs < this.#slowMs) this.#set(this.#slowMs - ranMs);
    else this.#tell(ranMs);
  }

  #tell(ranMs: number): void {
    const message = this.#message as M;
    this.#turn = this.#message = undefined;
    this.count += 1;
    tell(this.#onSlow, message, ranMs);
  }

  #set(ms: number): void {
    this.#clock.setTimer(ms, this, { background: true }); // may throw
    this.#isSet = true;
  }
}
