/** What came into the inbox, and what became of it. */
import type { Behaviour } from "./misbehaviour.ts";

export interface InboxReceipt {
  readonly channel: "email" | "webhook";
  /** The local part of the Message-ID, or the webhook-id; empty if there was none. */
  readonly id: string;
  /** The mailbox, or the user named by the webhook's path. */
  readonly to: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** Of a mail. */
  readonly subject?: string | undefined;
  /** `invalid` was refused for what it is, all else was answered as the inbox was told to. */
  readonly outcome: Behaviour | "invalid";
}

/** Whether the message was taken, so that another receipt with its id is a duplicate; its sender may not know. */
export function isTaken({ outcome }: InboxReceipt): boolean {
  return outcome === "ok" || outcome === "slow" || outcome === "lose";
}

export interface InboxStats {
  readonly email: Readonly<Record<string, number>>;
  readonly webhook: Readonly<Record<string, number>>;
}

export interface LedgerOptions {
  /** What to do with the next message. */
  readonly behave: (arrival: Omit<InboxReceipt, "outcome">) => Behaviour;
  /** Called before the sender gets any answer; what it throws ends the connection without one. */
  readonly onReceipt?: ((receipt: InboxReceipt, raw: Buffer) => void) | undefined;
}

/** The one book of both sinks. */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #counts = { email: new Map<string, number>(), webhook: new Map<string, number>() };
  readonly #recent: InboxReceipt[] = [];

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Writes the message down and says what to do with it. */
  enter(arrival: Omit<InboxReceipt, "outcome">, raw: Buffer, valid: boolean): InboxReceipt["outcome"] {
    const outcome: InboxReceipt["outcome"] = valid ? this.#options.behave(arrival) : "invalid";
    const receipt: InboxReceipt = { ...arrival, outcome };
    this.#options.onReceipt?.(receipt, raw);
    const counts = this.#counts[arrival.channel];
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    this.#recent.push(receipt);
    if (this.#recent.length > MAX_RECENT) this.#recent.shift();
    return outcome;
  }

  /** The last 200, oldest first. */
  recent(): readonly InboxReceipt[] {
    return [...this.#recent];
  }

  /** Messages by channel and outcome. */
  stats(): InboxStats {
    return { email: Object.fromEntries(this.#counts.email), webhook: Object.fromEntries(this.#counts.webhook) };
  }
}

const MAX_RECENT = 200;
