/** What a shared load is handed. Its signal is made when it is first asked for: it would be most of what a load costs. */
import type { RunContext } from "../policy.ts";

export class LoadContext implements RunContext {
  #controller: AbortController | undefined;

  /** Aborts when nobody wants the result any more. */
  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  /** Not a method: a load must not end itself for its callers. Nothing if it has been aborted already. */
  static abort(context: LoadContext, reason: unknown): void {
    (context.#controller ??= new AbortController()).abort(reason);
  }
}
