/** What a call of `fetch` asks for, and whether it may be repeated. */
import type { Deadline } from "../clock/deadline.ts";

export type FetchFunction = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface FetchInit extends RequestInit {
  /** Sent with each attempt, in the header that is there for it. */
  readonly idempotencyKey?: string | undefined;
  /** In place of the policy's: one of its own, or milliseconds from the call on. */
  readonly deadline?: number | Deadline | undefined;
}

export interface FetchCall {
  readonly input: string | URL | Request;
  readonly init: RequestInit;
  readonly signal: AbortSignal | undefined;
  readonly isRepeatable: boolean;
  /** That came, and of which nobody has taken the body so far. */
  readonly responses: Set<Response>;
  /** With the key, if the call has one, and with `more`. */
  headers(context: { readonly idempotencyKey: string }, more: Readonly<Record<string, string>>): Headers;
}

/** RFC 9110, section 9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export function callOf(
  input: string | URL | Request,
  init: FetchInit,
  {
    keyHeader = "idempotency-key",
    makeKeys = false,
  }: { keyHeader?: string | undefined; makeKeys?: boolean | undefined },
): FetchCall {
  const request = typeof input === "object" && "headers" in input ? input : undefined;
  const method = (init.method ?? request?.method ?? "GET").toUpperCase();
  const given = new Headers(init.headers ?? request?.headers);
  const isIdempotent = IDEMPOTENT.has(method);
  const hasKey = (given.get(keyHeader) ?? "") !== ""; // an empty one tells no call from another
  const needsKey = !hasKey && (init.idempotencyKey !== undefined || (makeKeys && !isIdempotent));
  return {
    input,
    init,
    signal: (init.signal === undefined ? request?.signal : init.signal) ?? undefined, // null is none, whatever the request has
    responses: new Set(),
    isRepeatable: (isIdempotent || needsKey || hasKey) && canBeReadAgain(init.body ?? request?.body),
    headers(context, more) {
      const headers = new Headers(given);
      if (needsKey) headers.set(keyHeader, context.idempotencyKey);
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
      return headers;
    },
  };
}

/** A stream, whether the web's or Node's, is gone once it has been sent. */
function canBeReadAgain(body: unknown): boolean {
  if (typeof body !== "object" || body === null) return true;
  return !("getReader" in body) && !(Symbol.asyncIterator in body);
}

/** Gives its connection back. */
export function discard(response: Response | undefined): void {
  if (response?.bodyUsed === false) response.body?.cancel().catch(() => {}); // it may have failed already
}

/** All but the one that is handed on, also if somebody has made another of its body. */
export function discardRest({ responses }: FetchCall, handedOn: Response | undefined): void {
  for (const response of responses) if (response.body !== handedOn?.body) discard(response);
  responses.clear();
}
