/**
 * `fetch` as a service that fails is to be called: each attempt and all of them together have a limit, what may pass by
 * itself is tried again when the server asks for it, and nothing is done twice that the server couldn't tell from once.
 * What comes is what `fetch` itself gives: a response is a response, whatever its status, and the last one counts.
 */
import type { Clock } from "../clock/clock.ts";
import { deadlineHeaders } from "../clock/deadline-header.ts";
import { Deadline } from "../clock/deadline.ts";
import { systemClock } from "../clock/system.ts";
import { HttpStatusError } from "../errors.ts";
import { checkFunction, checkFunctions, checkMs } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import { classifyError, type RetryVerdict } from "./classify.ts";
import { callOf, discard, discardRest, type FetchCall, type FetchFunction, type FetchInit } from "./fetch-call.ts";
import { parseRetryAfter } from "./retry-after.ts";
import type { RetryContext, RetryOptions, RetryStats } from "./retry-options.ts";
import { Retry } from "./retry.ts";
import { Timeout } from "./timeout.ts";

export interface FetchPolicyOptions extends Omit<RetryOptions, "retryResult"> {
  /** Makes an attempt. @default the runtime's `fetch` */
  readonly fetch?: FetchFunction | undefined;
  /** How long the head of a response may take, in one attempt. At least 1. @default 10_000 */
  readonly attemptTimeoutMs?: number | undefined;
  /**
   * How long it may take until the head of the response, over all attempts, in milliseconds, or until when; `DeadlineError`
   * if the next would be too late. @default 30_000
   */
  readonly deadline?: RetryOptions["deadline"];
  /** Around each attempt: a breaker, a limit, or both composed. It sees a status of 400 or more as `HttpStatusError`. */
  readonly around?: Policy | undefined;
  /** The header that has the key by which the server tells a repetition. @default "idempotency-key" */
  readonly keyHeader?: string | undefined;
  /** Makes a key for each POST or PATCH that has none. Only for servers that heed it. @default false */
  readonly makeKeys?: boolean | undefined;
  /** Tells the server, in the header of `deadlineHeaders`, how much time is left. @default false */
  readonly sendDeadline?: boolean | undefined;
  /** Whether to try again after this error, for what may be repeated. @default classifyFetchError */
  readonly classify?: ((error: unknown) => RetryVerdict) | undefined;
}

export type FetchPolicyStats = RetryStats &
  Readonly<{
    /** Calls with one attempt only: not idempotent and without a key, or with a body that can be read once. */
    unrepeatable: number;
  }>;

/** To be called as `fetch` is. */
export interface PolicyFetch {
  (input: string | URL | Request, init?: FetchInit): Promise<Response>;
  stats(): FetchPolicyStats;
}

/**
 * Repeated is what HTTP calls idempotent (GET, HEAD, OPTIONS, TRACE, PUT and DELETE; RFC 9110, section 9.2.2), and what
 * has a key, in its `keyHeader` or as `idempotencyKey`. Rejects as `fetch` does; with `TimeoutError` when an attempt or
 * all of them took too long; with `DeadlineError` instead of a wait that would be too long. The signal ends the body
 * too, the limits don't. The body of a response that is not handed on is cancelled.
 */
export function fetchPolicy(options: FetchPolicyOptions = {}): PolicyFetch {
  const policy = new FetchPolicy(options);
  const policyFetch = Object.assign(
    (input: string | URL | Request, init?: FetchInit): Promise<Response> => policy.call(input, init),
    { stats: () => policy.stats() },
  );
  register("fetch", options, policyFetch);
  return policyFetch;
}

/** As `classifyError`, and "retry" for how browsers say that the network failed: by a text alone. */
export function classifyFetchError(error: unknown): RetryVerdict {
  return error instanceof TypeError && NETWORK_FAILURES.has(error.message) ? "retry" : classifyError(error);
}

/** Of Chromium, Firefox, Safari and Bun, as https://github.com/sindresorhus/is-network-error has them. */
const NETWORK_FAILURES: ReadonlySet<string> = new Set([
  "Failed to fetch",
  "network error",
  "NetworkError when attempting to fetch resource.",
  "Load failed",
  "The Internet connection appears to be offline.",
  "A network error occurred.",
]);

class FetchPolicy {
  readonly #options: FetchPolicyOptions;
  readonly #clock: Clock;
  readonly #deadline: number | Deadline | (() => Deadline | undefined);
  readonly #retry: Retry;
  readonly #once: Retry;
  readonly #timeout: Timeout;

  constructor(options: FetchPolicyOptions) {
    const {
      attemptTimeoutMs = 10_000,
      deadline = 30_000,
      clock = systemClock,
      classify = classifyFetchError,
    } = options;
    checkMs("attemptTimeoutMs", attemptTimeoutMs, { min: 1, infinity: true });
    checkFunctions(options, ["fetch"]);
    if (options.around !== undefined)
      checkFunction("around.run", (options.around as { readonly run?: unknown } | null)?.run);
    const shared = { ...options, name: undefined, dependency: undefined, deadline, classify };
    this.#options = { ...options };
    this.#deadline = deadline;
    this.#clock = clock;
    this.#retry = new Retry({
      ...shared,
      onRetry(event) {
        discard(responseOf(event.reason));
        options.onRetry?.(event);
      },
    });
    this.#once = new Retry({ ...shared, retries: 0 });
    this.#timeout = new Timeout(attemptTimeoutMs, { clock });
  }

  stats(): FetchPolicyStats {
    const [often, once] = [this.#retry.stats(), this.#once.stats()];
    return {
      attempts: often.attempts + once.attempts,
      retries: often.retries,
      waiting: often.waiting,
      abandoned: often.abandoned + once.abandoned,
      lateErrors: often.lateErrors + once.lateErrors,
      unrepeatable: once.attempts,
    };
  }

  async call(input: string | URL | Request, init: FetchInit = {}): Promise<Response> {
    const call = callOf(input, init, this.#options);
    const { deadline: source = this.#deadline } = init;
    const given = typeof source === "function" ? source() : source;
    const { signal } = call;
    const isLimit = typeof given === "number" && given < Infinity;
    const own = isLimit ? Deadline.after(given, { signal, clock: this.#clock }) : undefined;
    const deadline = typeof given === "object" ? given : own;
    let answer: Response | undefined;
    try {
      const policy = call.isRepeatable ? this.#retry : this.#once;
      answer = await policy.run((context) => this.#attempt(call, deadline, context), {
        signal,
        deadline: given === undefined ? Infinity : (own ?? given), // checked there
        idempotencyKey: init.idempotencyKey,
      });
      return answer;
    } catch (error) {
      answer = responseOf(error);
      if (answer !== undefined) return answer;
      throw error;
    } finally {
      own?.close();
      discardRest(call, answer);
    }
  }

  #attempt(call: FetchCall, deadline: Deadline | undefined, context: RetryContext): Promise<Response> {
    discardRest(call, undefined);
    const send: Task<Response> = ({ signal }) => this.#send(call, deadline, context, signal);
    const limited: Task<Response> = ({ signal }) => this.#timeout.run(send, { signal });
    const wait: WaitOptions = { signal: context.signal };
    return this.#options.around === undefined ? this.#timeout.run(send, wait) : this.#options.around.run(limited, wait);
  }

  /** Throws for a status of 400 or more, so that all policies around it see a failure. */
  async #send(
    call: FetchCall,
    deadline: Deadline | undefined,
    context: RetryContext,
    attempt: AbortSignal | undefined,
  ): Promise<Response> {
    const { fetch: send = fetch, sendDeadline = false } = this.#options;
    const more = sendDeadline && deadline !== undefined ? deadlineHeaders(deadline) : {};
    // The signals of the attempt end with it; those of the caller are for the body as well.
    const signals = [attempt, context.signal, call.signal, deadline?.signal].filter((each) => each !== undefined);
    const signal = AbortSignal.any(signals);
    const response = await send(call.input, { ...call.init, headers: call.headers(context, more), signal });
    if (signal.aborted) {
      discard(response); // nobody waits for it any more
      throw signal.reason;
    }
    call.responses.add(response); // something else may end the call, or the attempt, before this is heard of
    if (response.status < 400) return response;
    const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), this.#clock.wallNow());
    throw new HttpStatusError(response, retryAfterMs);
  }
}

function responseOf(error: unknown): Response | undefined {
  return error instanceof HttpStatusError ? error.response : undefined;
}
