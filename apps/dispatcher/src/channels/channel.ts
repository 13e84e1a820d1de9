/** The seam every channel fits: e-mail and webhook now; in-app, SMS and push have the same shape. */
import type { Content, User } from "../model.ts";

/** What can be known of a channel without opening it: enough to check templates and to tell who it reaches. */
export interface ChannelForm {
  readonly name: string;
  /** The fields that a template for this channel must and may have. */
  readonly fields: {
    readonly required: readonly string[];
    readonly optional: readonly string[];
    /**
     * What a finished field must be, where any text won't do: `line` has its white space folded into single spaces,
     * `json` must parse and may be written with the filter `json`.
     */
    readonly formats?: Readonly<Record<string, "line" | "json">> | undefined;
  };
  /** Escapes what comes from outside, for the named field; `RangeError` for one that the channel doesn't have. */
  readonly escape: (field: string, value: string) => string;
  /** Where the channel reaches the user; undefined if it can't. */
  readonly addressOf: (user: User) => string | undefined;
}

export interface Channel extends ChannelForm {
  /** Who answers at the address: one breaker each (the mail server; the origin of a webhook). */
  providerOf(address: string): string;
  /**
   * One attempt. Resolves when the provider took it; else `SendError`, or the signal's reason if that ended it.
   * An abort after the provider's answer comes too late: the answer stands.
   */
  send(message: Message, context: { readonly signal: AbortSignal }): Promise<Receipt>;
  /** Ends the connections, and with them what still runs: it rejects as transient, as does every later send. */
  close(): Promise<void>;
}

export interface Message {
  /** Stable over all attempts, so that a receiver can tell a repetition. */
  readonly id: string;
  readonly user: User;
  readonly address: string;
  readonly content: Content;
}

export interface Receipt {
  /** What the provider said, for the history. */
  readonly answer: string;
}

/** The provider refused, or could not be asked. */
export class SendError extends Error {
  override readonly name = "SendError";
  readonly code = "SEND_FAILED";
  /** `transient` is worth another attempt, `permanent` never is. */
  readonly kind: "transient" | "permanent";
  /** Whether this speaks against the provider (and its breaker counts it), or only against this message. */
  readonly providerFault: boolean;
  /** The provider's own wish. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    facts: { kind: "transient" | "permanent"; providerFault: boolean; retryAfterMs?: number | undefined },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.kind = facts.kind;
    this.providerFault = facts.providerFault;
    this.retryAfterMs = facts.retryAfterMs;
  }
}
