import type { Granted } from "../flow/queue-core.ts";
import type { Wait } from "../internal/wait.ts";
import type { Turn } from "./turn.ts";

/** A message whose sender waits for the reply. */
export class Ask<M, R> {
  // I1  `reply` is in the line of replies until it is settled; only while it is there may the message be begun
  readonly message: M;
  /** The turn that asks, if an actor does. */
  readonly from: Turn | undefined;
  /** Where it is: waiting for room, in the mailbox, being handled, or none of these. */
  at: "line" | "mailbox" | "hand" | "gone" = "gone";
  /** The place in line, while it waits for room. */
  place: Wait<Granted<M | Ask<M, R>, object>, unknown> | undefined = undefined;
  /** What the sender has. */
  reply!: Wait<R, Ask<M, R>>;

  constructor(message: M, from: Turn | undefined) {
    this.message = message;
    this.from = from;
  }

  /** How many asks lead here, this one included. */
  get depth(): number {
    return (this.from?.depth ?? 0) + 1;
  }

  /** Whether somebody waits for the reply. */
  get isAwaited(): boolean {
    return this.reply.lane !== undefined;
  }

  /** Whether it is to be handled: not if who asked has left, or is about to hear of the abort. */
  begin(): boolean {
    if (this.reply.isDoomed) this.reply.onAbort(this.reply.watchers?.signal.reason);
    if (!this.isAwaited) return false;
    this.at = "hand";
    return true;
  }
}
