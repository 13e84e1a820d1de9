/** A channel whose provider is this process: it keeps the seam's contract, and answers without a network. */
import { type Channel, type ChannelForm, type Message, type Receipt, SendError } from "../channels/channel.ts";
import { channelForms } from "../channels/forms.ts";

export interface SinkChannelOptions {
  /** The provider. @default takes everything at once */
  readonly answer?: ((message: Message) => Receipt | Promise<Receipt>) | undefined;
}

export interface SinkChannel extends Channel {
  stats(): { readonly sent: number; readonly failed: number; readonly aborted: number };
}

/** In place of the channel of this name. */
export function sinkChannel(name: string, options: SinkChannelOptions = {}): SinkChannel {
  const form = channelForms.get(name);
  if (form !== undefined) return new InProcessChannel(form, options);
  throw new RangeError(`name must be ${[...channelForms.keys()].join(" or ")}, got ${JSON.stringify(name)}`);
}

const TAKEN: Receipt = { answer: "taken" };

class InProcessChannel implements SinkChannel {
  readonly name: string;
  readonly fields: Channel["fields"];
  readonly escape: Channel["escape"];
  readonly addressOf: Channel["addressOf"];
  readonly #answer: (message: Message) => Receipt | Promise<Receipt>;
  readonly #end = new AbortController();
  #sent = 0;
  #failed = 0;
  #aborted = 0;

  constructor(form: ChannelForm, { answer = () => TAKEN }: SinkChannelOptions) {
    this.name = form.name;
    this.fields = form.fields;
    this.escape = form.escape;
    this.addressOf = form.addressOf;
    this.#answer = answer;
  }

  stats(): { readonly sent: number; readonly failed: number; readonly aborted: number } {
    return { sent: this.#sent, failed: this.#failed, aborted: this.#aborted };
  }

  providerOf(_address: string): string {
    return "sink";
  }

  async send(message: Message, { signal }: { readonly signal: AbortSignal }): Promise<Receipt> {
    signal.throwIfAborted();
    this.#end.signal.throwIfAborted();
    try {
      const answer = this.#answer(message);
      const receipt = answer instanceof Promise ? await unless(answer, [signal, this.#end.signal]) : answer;
      this.#sent += 1;
      return receipt;
    } catch (error) {
      if (signal.aborted && error === signal.reason) this.#aborted += 1;
      else this.#failed += 1;
      throw error;
    }
  }

  async close(): Promise<void> {
    const facts = { kind: "transient", providerFault: false } as const;
    this.#end.abort(new SendError(`the ${this.name} channel is closed`, facts));
  }
}

/** The promise's outcome, unless a signal aborts first. Not `timeout`: this call has been made, and may have aborted. */
async function unless<T>(promise: Promise<T>, signals: readonly AbortSignal[]): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const watches = signals.map((signal) => [signal, () => reject(signal.reason)] as const);
  for (const [signal, onAbort] of watches) {
    if (signal.aborted) onAbort(); // by the provider itself, while it was called
    signal.addEventListener("abort", onAbort);
  }
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    for (const [signal, onAbort] of watches) signal.removeEventListener("abort", onAbort);
  }
}
