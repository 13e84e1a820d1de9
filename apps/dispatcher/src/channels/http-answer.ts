/** What a webhook's answer, or the lack of one, means: for this message, and for its receiver. */
import { parseRetryAfter } from "sluice";
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
  const retryAfterMs = parseRetryAfter(retryAfter, at);
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
