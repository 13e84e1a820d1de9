import { whenSettled } from "../internal/when-settled.ts";
import type { MessageContext, Receive, RetireReason, Setup } from "./actor-options.ts";
import type { Actor } from "./actor.ts";
import { Life, type Parent, type Spawn } from "./life.ts";

/** The state of an actor, whichever it is now: made for the first message, and for the next one after it was put away. */
export class State<M, R> {
  // I1  there is a life from the call of the setup on until it is put away; it has its `#receive` once the setup is done
  life: Life | undefined;
  #receive: Receive<M, R> | undefined;
  readonly #setup: Setup<M, R>;
  readonly #owner: Actor<M, R> & Parent;
  readonly #spawn: Spawn;

  constructor(owner: Actor<M, R> & Parent, setup: Setup<M, R>, spawn: Spawn) {
    this.#owner = owner;
    this.#setup = setup;
    this.#spawn = spawn;
  }

  /** Whether there is one that can handle messages. */
  get isMade(): boolean {
    return this.#receive !== undefined;
  }

  handle(message: M, context: MessageContext): R | PromiseLike<R> {
    return this.#receive === undefined ? this.#make(message, context) : this.#receive(message, context);
  }

  async putAway(why: RetireReason, isGentle: boolean): Promise<void> {
    const { life } = this;
    this.#receive = undefined;
    try {
      await life?.end(why, isGentle);
    } finally {
      this.life = undefined;
    }
  }

  #make(message: M, context: MessageContext): R | PromiseLike<R> {
    const life = (this.life = new Life(this.#owner));
    const made = this.#setup(life.contextOf(this.#owner, this.#spawn));
    const begin = (behavior: Awaited<typeof made>): R | PromiseLike<R> =>
      (this.#receive = life.begin(behavior))(message, context);
    return isThenable(made) ? whenSettled(made, begin) : begin(made);
  }
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<T>).then === "function";
}
