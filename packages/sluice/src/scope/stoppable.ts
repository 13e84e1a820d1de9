/** How a thing is stopped, told by what it can do: it need not know that there is a coordinator. */
import { asyncDispose, dispose } from "../internal/dispose.ts";

/** In this order: what lets work in, what carries it, what it stands on. */
export type ShutdownPhase = "intake" | "drain" | "close";

export interface StopContext {
  /** Aborts when the time that this has is up, or when a second signal asks for haste. */
  readonly signal: AbortSignal;
}

export type StopFunction = (context: StopContext) => unknown;

/**
 * A function, or what has, the first that fits: a `close` with callback, as servers of Node (`intake`); `stop`, as
 * workers and schedules (`intake`); `close` and `drain`, as a `Limiter` (`drain`); `close` and `put`, as a `Queue`
 * (`drain`); `close`, an asynchronous or a synchronous disposal (`close`); so is a function.
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
  readonly closeAllConnections?: () => void;
  readonly stop?: (options: StopContext) => unknown;
  readonly drain?: (options: StopContext) => unknown;
  readonly put?: unknown;
  readonly close?: (done?: (error?: Error) => void) => unknown;
  readonly abort?: (reason: unknown) => unknown;
  readonly [asyncDispose]?: () => unknown;
  readonly [dispose]?: () => unknown;
}

export function planOf(target: Stoppable): StopPlan {
  if (typeof target === "function") return { phase: "close", stop: target as StopFunction };
  const it = (target ?? {}) as Parts;
  const force = typeof it.abort === "function" ? (reason: unknown) => it.abort?.(reason) : undefined;
  if (typeof it.listening === "boolean" && typeof it.close === "function")
    return { phase: "intake", stop: () => closeServer(it), force: () => it.closeAllConnections?.() };
  if (typeof it.stop === "function") return { phase: "intake", stop: (context) => it.stop?.(context), force };
  if (typeof it.close === "function") {
    if (typeof it.drain === "function") return { phase: "drain", stop: (context) => closeAndDrain(it, context), force };
    return { phase: "put" in it ? "drain" : "close", stop: () => it.close?.(), force };
  }
  if (typeof it[asyncDispose] === "function") return { phase: "close", stop: () => it[asyncDispose]?.(), force };
  if (typeof it[dispose] === "function") return { phase: "close", stop: () => it[dispose]?.(), force };
  throw new TypeError("target must be a function or have stop, close or a disposal, has none of them");
}

/** Ends when the last connection has, not at once. */
function closeServer(server: Parts): Promise<void> | undefined {
  if (server.listening === false) return undefined;
  return new Promise((resolve, reject) => {
    server.close?.((error) => (error === undefined || error === null ? resolve() : reject(error)));
  });
}

async function closeAndDrain(target: Parts, { signal }: StopContext): Promise<void> {
  await target.close?.();
  await target.drain?.({ signal });
}
