/**
 * Streams answers of a language model from whichever provider says something first: the next is asked when one fails or
 * is slow to begin, and all of it ends when the caller leaves or the deadline comes.
 */
import {
  classifyError,
  type Clock,
  Deadline,
  type DeadlineOptions,
  type Failover,
  failover,
  type Random,
  type Retry,
  retry,
  RetryBudget,
  type RetryVerdict,
} from "sluice";
import type { Prompt } from "./completion.ts";
import type { Provider } from "./provider.ts";
import type { TokenStream } from "./token-stream.ts";

export interface LlmClientOptions {
  /** From the call to the last token. @default 60_000 */
  readonly deadlineMs?: number;
  /** Without a first token for so long, the next provider is asked as well. @default 2_000 */
  readonly hedgeAfterMs?: number;
  /** @default a tenth of the calls */
  readonly budget?: RetryBudget;
  readonly clock?: Clock | undefined;
  readonly random?: Random;
}

export class LlmClient {
  readonly #providers: Failover<Provider>;
  readonly #retry: Retry;
  readonly #deadlineMs: number;
  readonly #clock: Clock | undefined;

  /** `providers` in the order in which they are preferred. */
  constructor(providers: readonly Provider[], options: LlmClientOptions = {}) {
    const { deadlineMs = 60_000, hedgeAfterMs = 2_000, clock, random } = options;
    const { budget = new RetryBudget({ clock }) } = options;
    this.#deadlineMs = deadlineMs;
    this.#clock = clock;
    this.#retry = retry({ retries: 2, baseMs: 500, classify, budget, clock, random });
    this.#providers = failover(providers, {
      hedgeAfterMs,
      budget: { onCall() {}, trySpend: () => budget.trySpend() }, // the retry has counted the call
      clock,
    });
  }

  /**
   * Resolves with the first token, to a stream of all. Read it to the end or leave the loop, which closes its connection.
   * Nothing is asked again once words have been said: what goes wrong from then on is the reader's to hear.
   */
  async stream(prompt: Prompt, options: Pick<DeadlineOptions, "signal" | "within"> = {}): Promise<TokenStream> {
    const deadline = Deadline.after(this.#deadlineMs, { ...options, clock: this.#clock });
    const close = (): void => deadline.close();
    try {
      const stream = await this.#retry.run((round) => this.#ask(prompt, round.signal, deadline), { deadline });
      stream.ended.then(close, close);
      return stream;
    } catch (error) {
      close();
      throw error;
    }
  }

  #ask(prompt: Prompt, signal: AbortSignal, deadline: Deadline): Promise<TokenStream> {
    return this.#providers.run(({ target, signal: attempt }) => target.open(prompt, attempt, deadline), { signal });
  }
}

/** Another round may help if any of the providers may do better: the last to fail need not be that one. */
function classify(error: unknown): RetryVerdict {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  return errors.some((each) => classifyError(each) === "retry") ? "retry" : "stop";
}
