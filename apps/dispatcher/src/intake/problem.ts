/** Refusals as RFC 9457 asks: `application/problem+json`, with a type that programs can tell apart. */

/** Into the body of the request, or into the line: a JSON pointer in URI fragment form, as in RFC 9457's own example. */
export interface InputError {
  readonly pointer: string;
  readonly detail: string;
}

export type ProblemKind =
  | "unreadable-body"
  | "invalid-json"
  | "invalid-query"
  | "not-found"
  | "method-not-allowed"
  | "too-large"
  | "unsupported-media-type"
  | "invalid-event"
  | "intake-full"
  | "internal-error"
  | "store-unavailable";

const PROBLEMS: Readonly<Record<ProblemKind, readonly [status: number, title: string]>> = {
  "unreadable-body": [400, "The body could not be read"],
  "invalid-json": [400, "The body is not JSON"],
  "invalid-query": [400, "The query is not complete"],
  "not-found": [404, "There is no such thing"],
  "method-not-allowed": [405, "The method is not allowed here"],
  "too-large": [413, "The input is too large"],
  "unsupported-media-type": [415, "The content type is not supported"],
  "invalid-event": [422, "The input is no event"],
  "intake-full": [429, "Too much is waiting already"],
  "internal-error": [500, "Something went wrong in here"],
  "store-unavailable": [503, "The events could not be stored"],
};

export interface ProblemFacts {
  readonly errors?: readonly InputError[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export function problem(kind: ProblemKind, detail: string, { errors, headers }: ProblemFacts = {}): Response {
  const [status, title] = PROBLEMS[kind];
  const document = { type: `urn:sluice:problem:${kind}`, title, status, detail, errors };
  return new Response(`${JSON.stringify(document)}\n`, {
    status,
    headers: { "content-type": "application/problem+json", ...headers },
  });
}

/** Whole seconds, at least one: `Retry-After` knows no others. */
export function retryAfter(ms: number): Readonly<Record<string, string>> {
  return { "retry-after": String(Math.max(1, Math.ceil(ms / 1_000))) };
}

export function pointerTo(path: readonly PropertyKey[]): string {
  const keys = path.map((key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1"));
  return ["#", ...keys.map((key) => encodeURIComponent(key.toWellFormed()))].join("/");
}
