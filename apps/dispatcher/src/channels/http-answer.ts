/** What a webhook's answer, or the lack of one, means: for this message, and for its receiver. */
import { SendError } from "./channel.ts";
import { oneLine } from "./one-line.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly location?: string | undefined;
  readonly retryAfter?: string | undefined;
  /** The beginning of the body. */
  readonly text: string;
  /** When it came, in milliseconds since the Unix epoch. */
  readonly at: number;
}

/** Timeout, conflict (an earlier attempt is still being worked on), too early, too many: 4xx that pass. */
const PASSING = new Set([408, 409, 425, 429]);

/** Undefined for success. */
export function fromHttp({ status, location, retryAfter, text, at }: HttpAnswer): SendError | undefined {
  if (status >= 200 && status < 300) return undefined;
  const answer = describeAnswer(status, text);
  if (status < 400) {
    // Where it leads was not looked at when the address was accepted; and a POST may turn into a GET on the way.
    const why = `${answer}: redirects are not followed${location === undefined ? "" : `, this one leads to ${location}`}`;
    return new SendError(oneLine(why), { kind: "permanent", providerFault: false });
  }
  const providerFault = status >= 500;
  if (!providerFault && !PASSING.has(status)) return new SendError(answer, { kind: "permanent", providerFault });
  const retryAfterMs = retryAfter === undefined ? undefined : parseRetryAfter(retryAfter, at);
  return new SendError(answer, { kind: "transient", providerFault, retryAfterMs });
}

export function describeAnswer(status: number, text: string): string {
  return oneLine(text === "" ? `HTTP ${status}` : `HTTP ${status}: ${text}`);
}

/** No answer. */
export function fromNetwork(error: unknown): SendError {
  const { message, code } = error as NodeJS.ErrnoException;
  const why = message === "" ? (code ?? "no connection") : message;
  return new SendError(oneLine(why), { kind: "transient", providerFault: true }, { cause: error });
}

/** Both forms of RFC 9110, 10.2.3: seconds, or a date. */
function parseRetryAfter(value: string, at: number): number | undefined {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const until = /^\w{3,9}, /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, until - at);
}
