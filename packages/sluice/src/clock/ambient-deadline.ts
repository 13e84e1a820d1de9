/**
 * The deadline of whatever runs now, known to all that it calls and awaits without being handed on. It is entered only
 * by `withDeadline`, and heeded only where that is asked for: by a policy with `within: currentDeadline`, which asks at
 * each run, by `retry.run(fn, { deadline: currentDeadline() })`, and by any wait that is given its signal, as in
 * `queue.take({ signal: currentDeadline()?.signal })`. A runtime without async context (browsers, so far) doesn't know
 * it: there it is in the context that `fn` is called with.
 */
import { AsyncContext } from "../internal/async-context.ts";
import type { RunContext } from "../policy.ts";
import { Deadline, type DeadlineOptions } from "./deadline.ts";

export interface DeadlineContext extends RunContext {
  readonly deadline: Deadline;
  readonly signal: AbortSignal;
}

/** That of the innermost `withDeadline` that this was called from, if there is one. */
export function currentDeadline(): Deadline | undefined {
  return ambient.get();
}

/**
 * Calls `fn`, which has `ms` from now, or what `within` has left if that is less; within the current deadline, unless
 * `within` is another. It is closed when what `fn` returned has settled. It ends nothing by itself: what has to stop
 * takes its signal, and who must not wait for work that ignores it puts a `timeout` around.
 */
export async function withDeadline<T>(
  ms: number,
  fn: (context: DeadlineContext) => T | PromiseLike<T>,
  options: DeadlineOptions = {},
): Promise<T> {
  const deadline = Deadline.after(ms, { ...options, within: options.within ?? currentDeadline() });
  try {
    return await ambient.run(deadline, () => fn(new Context(deadline)));
  } finally {
    deadline.close();
  }
}

const ambient = new AsyncContext<Deadline>();

class Context implements DeadlineContext {
  readonly deadline: Deadline;

  constructor(deadline: Deadline) {
    this.deadline = deadline;
  }

  get signal(): AbortSignal {
    return this.deadline.signal; // which sets its timer: only for who asks
  }
}
