/** How whatever takes time is told of the deadline it has to end by. */
import { DeadlineError } from "../errors.ts";
import { checkMs } from "../internal/check.ts";
import { checkDeadline, type Deadline } from "./deadline.ts";

/** The deadline, or what gives it at each call: `currentDeadline`, for that of whoever calls. */
export type DeadlineSource = Deadline | (() => Deadline | undefined);

export interface WithinOptions {
  /** It ends no later than this one, and with it. @default none */
  readonly within?: DeadlineSource | undefined;
  /** With less than this left, nothing is begun: `DeadlineError`. At least 0, and finite. @default 0 */
  readonly neededMs?: number | undefined;
}

/** The options with their defaults. */
export function checkWithin({ within, neededMs = 0 }: WithinOptions): WithinOptions {
  if (within !== undefined && typeof within !== "function") checkDeadline("within", within);
  return { within, neededMs: checkMs("neededMs", neededMs, { min: 0 }) };
}

/** The deadline of now, if there is one. Throws what it has ended with, or `DeadlineError`. */
export function deadlineWithin({ within, neededMs = 0 }: WithinOptions): Deadline | undefined {
  const deadline = typeof within === "function" ? within() : within;
  if (deadline === undefined) return undefined;
  deadline.signal.throwIfAborted();
  const { leftMs } = deadline;
  if (leftMs < neededMs) throw new DeadlineError(leftMs, neededMs);
  return deadline;
}
