/** Takes a turn for each message: handles it, replies to who asked, and says how it went. */
import type { Clock } from "../clock/clock.ts";
import { probe } from "../internal/probe.ts";
import { whenSettled } from "../internal/when-settled.ts";
import { isEcho } from "../scope/cancellation.ts";
import type { ActorOptions } from "./actor-options.ts";
import { Ask } from "./ask.ts";
import { type Inbox, messageOf } from "./inbox.ts";
import type { Entry } from "./mailbox-store.ts";
import { SlowWatch } from "./slow-watch.ts";
import { isThenable, type State } from "./state.ts";
import { isCurious, type Party, Turn, turns } from "./turn.ts";
import { attempt } from "./unheard.ts";

/** Whose turns they are. */
export interface Supervisor<M> extends Party {
  succeeded(): void;
  /** Whether it goes on at once. */
  failed(error: unknown, message: M, wasAsked: boolean): boolean;
  /** A turn that was waited for is over, and it goes on. */
  work(): void;
}

export class TurnTaker<M, R> {
  // I1  there is a turn from `enter` to `leave`, and while a message is handled, unless the clock kept it from being entered
  // I2  an ask that is begun is settled, or given up by who asked, when its turn is over
  turn: Turn | undefined;
  readonly counts = { completed: 0, failed: 0 };
  readonly #actor: Supervisor<M>;
  readonly #inbox: Inbox<M, R>;
  readonly #state: State<M, R>;
  readonly #clock: Clock;
  readonly #isTimed: boolean;
  readonly #slow: SlowWatch<M> | undefined;
  /** What is in hand, for whoever its handler's promise tells. */
  #message: M | undefined;
  #ask: Ask<M, R> | undefined;

  constructor(actor: Supervisor<M>, inbox: Inbox<M, R>, state: State<M, R>, options: ActorOptions<M>, clock: Clock) {
    const { slowMs, name } = options;
    this.#actor = actor;
    this.#inbox = inbox;
    this.#state = state;
    this.#clock = clock;
    this.#isTimed = slowMs !== undefined || name !== undefined;
    this.#slow = slowMs === undefined ? undefined : new SlowWatch(options, clock);
  }

  get slow(): number {
    return this.#slow?.count ?? 0;
  }

  get runMs(): number {
    return this.turn === undefined || !this.#isTimed ? 0 : Math.max(0, this.#clock.now() - this.turn.startedAt);
  }

  /** Whether it is done with the message, and goes on at once. */
  handle(entry: Entry<M, R>): boolean {
    const ask = entry instanceof Ask ? entry : undefined;
    const message = messageOf(entry);
    if (ask?.begin() === false) return true;
    this.#ask = ask;
    this.#message = message;
    try {
      const turn = this.enter(ask?.depth ?? 0);
      this.#slow?.begin(turn, message);
      const result = probe === undefined ? this.#state.handle(message, turn) : this.#handleObserved(message, turn, ask);
      if (!isThenable(result)) return this.#succeeded(result);
      void whenSettled(result, this.#onFulfilled, this.#onRejected);
      return false;
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** From here on this is what the actor does. */
  enter(depth: number): Turn {
    const turn = new Turn(this.#actor, depth, this.#isTimed ? this.#clock.now() : 0);
    if (this.#inbox.findsCycles && isCurious(this.#actor, this.counts.completed)) turns.enter(turn);
    return (this.turn = turn);
  }

  leave(): Turn | undefined {
    const { turn } = this;
    this.turn = this.#message = undefined;
    if (turn === undefined) return undefined;
    turn.isOver = true;
    if (this.#slow !== undefined) attempt(this.#actor, () => this.#slow?.end(turn));
    probe?.gaveBack(turn);
    return turn;
  }

  #handleObserved(message: M, turn: Turn, ask: Ask<M, R> | undefined): R | PromiseLike<R> {
    const handle = (): R | PromiseLike<R> => this.#state.handle(message, turn);
    probe?.took(this.#actor, turn, 1, ask?.reply);
    return probe === undefined ? handle() : probe.within(turn, handle);
  }

  readonly #onFulfilled = (value: R): void => {
    if (this.#succeeded(value)) this.#actor.work();
  };

  readonly #onRejected = (error: unknown): void => {
    if (this.#failed(error)) this.#actor.work();
  };

  #succeeded(value: R): boolean {
    this.leave();
    this.counts.completed += 1;
    this.#actor.succeeded();
    const ask = this.#takeAsk();
    if (ask !== undefined) this.#inbox.reply(ask, value);
    return true;
  }

  #failed(error: unknown): boolean {
    const message = this.#message as M;
    const ask = this.#takeAsk();
    const turn = this.leave();
    this.counts.completed += 1;
    if (ask !== undefined) this.#inbox.replyError(ask, error);
    if (turn?.isAborted === true && isEcho(error, turn.signal)) return true; // it ended since nobody wanted it any more
    this.counts.failed += 1;
    return this.#actor.failed(error, message, ask !== undefined);
  }

  #takeAsk(): Ask<M, R> | undefined {
    const ask = this.#ask;
    this.#ask = undefined;
    return ask;
  }
}
