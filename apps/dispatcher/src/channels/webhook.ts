/**
 * Webhooks, signed as Standard Webhooks asks (https://www.standardwebhooks.com). All attempts of a message have one
 * webhook-id, so a receiver can tell a repetition.
 */
import type { LookupFunction } from "node:net";
import { type Clock, systemClock } from "sluice";
import { Webhook } from "standardwebhooks";
import { Agent, type Dispatcher } from "undici";
import { type Channel, type Message, type Receipt, SendError } from "./channel.ts";
import { checkInteger } from "./check.ts";
import { webhookForm } from "./forms.ts";
import { checkTarget, guardedLookup } from "./guard.ts";
import { describeAnswer, fromHttp, fromNetwork } from "./http-answer.ts";

export interface WebhookOptions {
  /** Lets webhooks lead to loopback, private and other addresses that are not public. @default false */
  readonly allowPrivateNetworks?: boolean | undefined;
  /** Sends all messages elsewhere, such as into the local inbox; where it says is trusted. */
  readonly rewrite?: ((message: Message) => string) | undefined;
  /** At once, to one origin; whoever finds all of them busy waits, on the time of its attempt. @default 100 */
  readonly maxConnections?: number | undefined;
  /** Longest time until a connection stands, and longest silence of the receiver after that. @default 5000 */
  readonly timeoutMs?: number | undefined;
  /** Dates the signatures. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Resolves names. @default the system's */
  readonly lookup?: LookupFunction | undefined;
}

export function webhookChannel(options: WebhookOptions = {}): Channel {
  return new HttpChannel(options);
}

class HttpChannel implements Channel {
  readonly name: string = webhookForm.name;
  readonly fields: Channel["fields"] = webhookForm.fields;
  readonly escape: Channel["escape"] = webhookForm.escape;
  readonly addressOf: Channel["addressOf"] = webhookForm.addressOf;
  readonly #guarded: boolean;
  readonly #rewrite: WebhookOptions["rewrite"];
  readonly #clock: Clock;
  readonly #agent: Agent;
  #closed = false;

  constructor(options: WebhookOptions) {
    const { allowPrivateNetworks = false, rewrite, maxConnections = 100, timeoutMs = 5_000, lookup } = options;
    this.#guarded = !allowPrivateNetworks && rewrite === undefined;
    this.#rewrite = rewrite;
    this.#clock = options.clock ?? systemClock;
    const resolve = this.#guarded ? guardedLookup(lookup) : lookup;
    this.#agent = new Agent({
      connections: checkInteger("maxConnections", maxConnections, 1),
      allowH2: false,
      headersTimeout: checkInteger("timeoutMs", timeoutMs, 1),
      bodyTimeout: timeoutMs,
      connect: { timeout: timeoutMs, ...(resolve !== undefined && { lookup: resolve }) },
    });
  }

  providerOf(address: string): string {
    return URL.parse(address)?.origin ?? address;
  }

  async send(message: Message, { signal }: { readonly signal: AbortSignal }): Promise<Receipt> {
    signal.throwIfAborted();
    if (this.#closed) throw closed();
    const target = checkTarget(this.#rewrite?.(message) ?? message.address, this.#guarded);
    const body = message.content["body"] ?? "";
    const { statusCode, headers, body: answer } = await this.#post(target, body, this.#sign(message, body), signal);
    const at = this.#clock.wallNow();
    const text = await beginningOf(answer);
    const [location, retryAfter] = [headers["location"], headers["retry-after"]].map((value) => [value].flat()[0]);
    const failure = fromHttp({ status: statusCode, location, retryAfter, text, at });
    if (failure !== undefined) throw failure;
    return { answer: describeAnswer(statusCode, text) };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#agent.destroy();
  }

  #sign({ id, user }: Message, body: string): Record<string, string> {
    const at = new Date(this.#clock.wallNow());
    try {
      JSON.parse(body);
      return {
        "content-type": "application/json",
        "user-agent": "sluice-dispatcher",
        "webhook-id": id,
        "webhook-timestamp": `${Math.floor(at.getTime() / 1_000)}`,
        "webhook-signature": new Webhook(user.webhook?.secret ?? "").sign(id, at, body),
      };
    } catch (error) {
      const what = error instanceof SyntaxError ? "the body is not JSON" : "the user's webhook secret is not usable";
      throw new SendError(`${what}: ${(error as Error).message}`, PERMANENT, { cause: error });
    }
  }

  async #post(
    url: URL,
    body: string,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    try {
      const { origin, pathname, search } = url;
      return await this.#agent.request({ origin, path: pathname + search, method: "POST", headers, body, signal });
    } catch (error) {
      if (signal.aborted && error === signal.reason) throw error;
      if (this.#closed) throw closed(error);
      throw error instanceof SendError ? error : fromNetwork(error);
    }
  }
}

const PERMANENT = { kind: "permanent", providerFault: false } as const;
/** What is read of an answer; longer ones cost their connection. */
const MAX_ANSWER_BYTES = 16_384;
const KEPT_CHARACTERS = 200;

/** The status has come, and whatever ends the reading, the attempt's abort included, doesn't change it. */
async function beginningOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (text.length < KEPT_CHARACTERS) text += decoder.decode(chunk, { stream: true });
      if (bytes > MAX_ANSWER_BYTES) break; // which destroys the body
    }
  } catch {
    // the part that came is enough
  }
  return text.slice(0, KEPT_CHARACTERS);
}

function closed(cause?: unknown): SendError {
  return new SendError("the webhook channel is closed", { kind: "transient", providerFault: false }, { cause });
}
