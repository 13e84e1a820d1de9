/** One state of an actor, from the setup that makes it until it is put away. */
import { ClosedError } from "../errors.ts";
import { checkFunction, checkOneOf } from "../internal/check.ts";
import { Cancellation } from "../scope/cancellation.ts";
import type {
  ActorContext,
  ActorOptions,
  Behavior,
  ChildStrategy,
  Receive,
  RetireReason,
  Setup,
} from "./actor-options.ts";
import type { Actor } from "./actor.ts";

/** An actor as its parent sees it. */
export interface Child {
  close(): void;
  clear(): unknown;
  /** Because a sibling does. */
  restart(): void;
  /** Resolves when it has ended, once it is closed. */
  drain(): Promise<void>;
}

/** An actor as its children see it. */
export interface Parent {
  readonly strategy: ChildStrategy;
  /** A child has escalated. */
  fail(error: unknown): void;
}

export type Spawn = <N, S>(life: Life, capacity: number, setup: Setup<N, S>, options?: ActorOptions<N>) => Actor<N, S>;

export class Life {
  // I1  `children` are those that were spawned here and are not over, the oldest first
  readonly parent: Parent;
  readonly children: Set<Child> = new Set();
  readonly #cancellation = new Cancellation();
  #retire: Behavior<never, unknown>["retire"];

  constructor(parent: Parent) {
    this.parent = parent;
  }

  contextOf<M, R>(self: Actor<M, R>, spawn: Spawn): ActorContext<M, R> {
    const cancellation = this.#cancellation;
    return {
      self,
      get signal() {
        return cancellation.signal;
      },
      spawn: (capacity, setup, options) => {
        if (cancellation.isCancelled) throw new ClosedError("state of the actor");
        return spawn(this, capacity, setup, options);
      },
    };
  }

  /** What handles messages, from what the setup has made. */
  begin<M, R>(made: Receive<M, R> | Behavior<M, R>): Receive<M, R> {
    if (typeof made === "function") return made;
    checkFunction("what setup returns, or its receive,", made?.receive);
    if (made.retire !== undefined) checkFunction("retire", made.retire);
    this.#retire = (why) => made.retire?.(why);
    return (message, context) => made.receive(message, context);
  }

  /** A child has escalated: to nobody, if this is being put away. */
  fail(failure: unknown): void {
    if (this.#cancellation.isCancelled) void Promise.reject(failure);
    else this.parent.fail(failure);
  }

  /** A child restarts: the others do with it, as far as they share its lot. */
  restartWith(child: Child): void {
    const { strategy } = this.parent;
    if (strategy === "one-for-one") return;
    const all = [...this.children];
    const others = strategy === "one-for-all" ? all : all.slice(all.indexOf(child));
    for (const other of others) if (other !== child) other.restart();
  }

  /** Ends the children, then puts the state away. They handle what is in their mailboxes if it `isGentle`. */
  async end(why: RetireReason, isGentle: boolean): Promise<void> {
    this.#cancellation.cancel(new ClosedError("state of the actor"));
    await Promise.all(
      [...this.children].map((child) => {
        child.close();
        if (!isGentle) child.clear();
        return child.drain();
      }),
    );
    await this.#retire?.(why);
  }
}

export function checkStrategy(strategy: ChildStrategy = "one-for-one"): ChildStrategy {
  return checkOneOf("children", strategy, ["one-for-one", "one-for-all", "rest-for-one"]);
}
