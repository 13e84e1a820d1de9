/** How a thing is stopped, told by what it can do: it need not know that there is a coordinator. */
import { asyncDispose, dispose } from "../internal/dispose.ts";

/** In this order: what lets work in, what carries it, what it stands on. */
export type ShutdownPhase = "intake" | "drain" | "close";

export interface StopContext {
  /** Aborts when the time that this has is up, or when a second signal asks for haste. */
  readonly signal: AbortSignal;
  /** How long that is, from now on; `Infinity` if nothing limits it. */
  readonly timeoutMs: number;
}

export type StopFunction = (context: StopContext) => unknown;

/**
 * A function (`close`), or what has, the first that fits: `listen` and `close`, as servers (`intake`); `stopWithin`, as
 * workers of `@sluice/jobs` (`intake`); `stop`, as schedules (`intake`); `close`, `drain` and `stats`, as a `Limiter`
 * (`drain`), and with `acquire`, as a `Pool` (`close`); `close` and `put`, as a `Queue` (`drain`); `close`, an
 * asynchronous or a synchronous disposal (`close`). But for `stopWithin` nothing is handed to them: to some, an argument
 * would mean haste. What has a `drain` but no `stats` isn't drained: with others that is the word for throwing away.
 */
export type Stoppable = StopFunction | object;

export interface StopPlan {
  readonly phase: ShutdownPhase;
  readonly stop: StopFunction;
  /** For when its time is up: ends what is still inside. */
  readonly force?: ((reason: unknown) => unknown) | undefined;
}

interface Parts {
  readonly listening?: unknown;
  readonly listen?: unknown;
  readonly acquire?: unknown;
  readonly put?: unknown;
  readonly stats?: unknown;
  readonly closeAllConnections?: () => void;
  readonly stopWithin?: StopFunction;
  readonly stop?: () => unknown;
  readonly drain?: (options: Pick<StopContext, "signal">) => unknown;
  readonly close?: (done?: (error?: Error) => void) => unknown;
  readonly abort?: (reason: unknown) => unknown;
  readonly [asyncDispose]?: () => unknown;
  readonly [dispose]?: () => unknown;
}

export function planOf(target: Stoppable): StopPlan {
  if (typeof target === "function") return { phase: "close", stop: target as StopFunction };
  const it = (target ?? {}) as Parts;
  const force = isFunction(it.abort) ? (reason: unknown) => it.abort?.(reason) : undefined;
  if (isFunction(it.listen) && isFunction(it.close))
    return { phase: "intake", stop: () => closeServer(it), force: () => it.closeAllConnections?.() };
  if (isFunction(it.stopWithin)) return { phase: "intake", stop: (context) => it.stopWithin?.(context), force };
  if (isFunction(it.stop)) return { phase: "intake", stop: () => it.stop?.(), force };
  if (isFunction(it.close)) {
    const isLender = isFunction(it.acquire);
    if (isFunction(it.drain) && isFunction(it.stats))
      return { phase: isLender ? "close" : "drain", stop: (context) => closeAndDrain(it, context), force };
    return { phase: isFunction(it.put) ? "drain" : "close", stop: () => it.close?.(), force };
  }
  if (isFunction(it[asyncDispose])) return { phase: "close", stop: () => it[asyncDispose]?.(), force };
  if (isFunction(it[dispose])) return { phase: "close", stop: () => it[dispose]?.(), force };
  throw new TypeError("target must be a function or have stop, close or a disposal, has none of them");
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

/** Ends when the last connection has. Servers of Node say so to a callback, and are never closed twice. */
function closeServer(server: Parts): unknown {
  if (typeof server.listening !== "boolean") return server.close?.();
  if (!server.listening) return undefined;
  return new Promise<void>((resolve, reject) => {
    server.close?.((error) => (error === undefined || error === null ? resolve() : reject(error)));
  });
}

async function closeAndDrain(target: Parts, { signal }: StopContext): Promise<void> {
  await target.close?.();
  await target.drain?.({ signal });
}
