/**
 * What an outcome says: whether trying again may help (`classifyError`, for `retry`), and whether it speaks against the
 * dependency (`classifyOutcome`, for `CircuitBreaker`). Both read the error and then its causes, from the outside in,
 * and the first that says anything decides. An HTTP status is looked for in `status`, `statusCode` and
 * `response.status`.
 */

export type RetryVerdict = "retry" | "stop";

export type CircuitOutcome = PromiseSettledResult<unknown>;
export type CircuitVerdict = "success" | "failure" | "ignore";

const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const TRANSIENT_CODES: ReadonlySet<unknown> = new Set([
  "ECONNRESET",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "ECONNREFUSED",
  // As Node's `fetch` has them in its causes (https://github.com/nodejs/undici/blob/main/docs/docs/api/Errors.md).
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/** What sluice turned away itself: the dependency was not asked. */
const REFUSALS: ReadonlySet<unknown> = new Set(["CIRCUIT_OPEN", "QUEUE_FULL", "RATE_LIMITED", "CLOSED", "DEADLINE"]);

/**
 * "retry" for what may pass by itself: HTTP 429, 502, 503 and 504, a connection that was reset, refused or timed
 * out, also as Node's `fetch` tells of it, a name server that didn't answer, a `TimeoutError`. "stop" for the rest: an
 * abort, what a breaker or limit of ours refused, every other status, and every error that says none of this.
 */
export function classifyError(error: unknown): RetryVerdict {
  for (const { name, code, status } of chain(error)) {
    if (name === "AbortError" || REFUSALS.has(code)) return "stop";
    if (status !== undefined) return TRANSIENT_STATUSES.has(status) ? "retry" : "stop";
    if (name === "TimeoutError" || TRANSIENT_CODES.has(code)) return "retry";
  }
  return "stop";
}

/**
 * A rejection is a "failure" unless it is none of the dependency's doing: an abort, what a breaker or limit of ours
 * refused, and a 4xx that is neither 408 nor 429 are ignored. Whatever fulfils is a "success".
 */
export function classifyOutcome(outcome: CircuitOutcome): CircuitVerdict {
  if (outcome.status === "fulfilled") return "success";
  for (const { name, code, status } of chain(outcome.reason)) {
    if (name === "AbortError" || REFUSALS.has(code)) return "ignore";
    if (status !== undefined) return isOwnFault(status) ? "ignore" : "failure";
  }
  return "failure";
}

/** 408 and 429 are no fault of the caller's: they tell of a server that can't keep up. */
function isOwnFault(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 429;
}

interface Facts {
  readonly name: unknown;
  readonly code: unknown;
  readonly status: number | undefined;
}

/** The error, its cause, the cause of that, and so on. */
function* chain(error: unknown): Generator<Facts> {
  let link = error;
  for (let depth = 0; depth < MAX_DEPTH && typeof link === "object" && link !== null; depth += 1) {
    const { name, code, status, statusCode, response, cause } = link as Readonly<Record<string, unknown>>;
    const answer = (response ?? {}) as Readonly<Record<string, unknown>>;
    yield { name, code, status: [status, statusCode, answer["status"]].find(isStatus) };
    link = cause;
  }
}

/** A chain may bite its tail. */
const MAX_DEPTH = 8;

function isStatus(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599;
}
