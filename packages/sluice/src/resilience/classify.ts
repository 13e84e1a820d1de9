/**
 * What an outcome says: whether trying again may help (`classifyError`, for `retry`), and whether it speaks against the
 * dependency (`classifyOutcome`, for `CircuitBreaker`). Both read the error and then its causes, from the outside in,
 * and the first that says anything decides. An HTTP status is looked for in `status`, `statusCode` and
 * `response.status`.
 */

export type RetryVerdict = "retry" | "stop";

export type CircuitOutcome = PromiseSettledResult<unknown>;
export type CircuitVerdict = "success" | "failure" | "ignore";

/** By `status`, `name` and `code`. */
const TRANSIENT: ReadonlySet<unknown> = new Set([
  429,
  502,
  503,
  504,
  "TimeoutError",
  "ECONNRESET",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "ECONNREFUSED",
  // As Node's `fetch` has them in its causes (https://github.com/nodejs/undici/blob/main/docs/docs/api/Errors.md).
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/** A chain may bite its tail. */
const MAX_DEPTH = 8;

/** What sluice turned away itself: the dependency was not asked. */
const REFUSALS: ReadonlySet<unknown> = new Set([
  "CIRCUIT_OPEN",
  "QUEUE_FULL",
  "RATE_LIMITED",
  "CLOSED",
  "DEADLINE",
  "OVERLOADED",
]);

/**
 * "retry" for what may pass by itself: HTTP 429, 502, 503 and 504, a connection that was reset, refused or timed
 * out, also as Node's `fetch` tells of it, a name server that didn't answer, a `TimeoutError`. "stop" for the rest: an
 * abort, what a breaker or limit of ours refused, every other status or `code` in words, whatever caused it, and every
 * error that says none of this. An `AggregateError`, as of `failover`, may pass if one of its errors may.
 */
export function classifyError(error: unknown): RetryVerdict {
  return mayPass(error, MAX_DEPTH) ? "retry" : "stop";
}

function mayPass(error: unknown, depth: number): boolean {
  const errors = errorsOf(error);
  if (errors !== undefined) return depth > 0 && errors.some((each) => mayPass(each, depth - 1));
  const isTransient = ask(error, ({ name, code }, status) => {
    if (status !== undefined) return TRANSIENT.has(status);
    if (TRANSIENT.has(name)) return true;
    return name === "AbortError" || typeof code === "string" ? TRANSIENT.has(code) : undefined;
  });
  return isTransient === true;
}

/**
 * A rejection is a "failure" unless it is none of the dependency's doing: an abort, what a breaker or limit of ours
 * refused, and a 4xx that is neither 408 nor 429 are ignored. Whatever fulfils is a "success".
 */
export function classifyOutcome(outcome: CircuitOutcome): CircuitVerdict {
  if (outcome.status === "fulfilled") return "success";
  const isIgnored = ask(outcome.reason, ({ name, code }, status) => {
    if (name === "AbortError" || REFUSALS.has(code)) return true;
    return status === undefined ? undefined : isOwnFault(status);
  });
  return isIgnored === true ? "ignore" : "failure";
}

/** Whether sluice itself turned the call away. */
export function isRefusal(error: unknown): boolean {
  return (
    ask(error, ({ code }, status) => (REFUSALS.has(code) ? true : status === undefined ? undefined : false)) === true
  );
}

/** 408 and 429 are no fault of the caller's: they tell of a server that can't keep up. */
export function isOwnFault(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 429;
}

/** Of an `AggregateError`. */
export function errorsOf(error: unknown): readonly unknown[] | undefined {
  const isMany = error instanceof AggregateError && Array.isArray(error.errors);
  return isMany ? (error.errors as unknown[]) : undefined;
}

/** What an error says itself about when to try again, or 0. */
export function hintMs(error: unknown): number {
  try {
    const ms = (error as { readonly retryAfterMs?: unknown } | null | undefined)?.retryAfterMs;
    return typeof ms === "number" && ms > 0 ? ms : 0;
  } catch {
    return 0; // it is anybody's, and may have a getter that throws
  }
}

interface Link {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly response?: { readonly status?: unknown } | null;
  readonly cause?: unknown;
}

/** What the error says, or its cause, or the cause of that, and so on. */
export function ask(
  error: unknown,
  says: (link: Link, status: number | undefined) => boolean | undefined,
): boolean | undefined {
  let link = error as Link | null | undefined;
  try {
    for (let depth = 0; depth < MAX_DEPTH && link != null; depth += 1) {
      const answer = says(link, [link.status, link.statusCode, link.response?.status].find(isStatus));
      if (answer !== undefined) return answer;
      link = link.cause as Link | null | undefined;
    }
  } catch {
    // It is anybody's, and may have a getter that throws: such an error says nothing.
  }
  return undefined;
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 99;
}
