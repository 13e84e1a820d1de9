/**
 * One place that answers prompts: when to leave it alone, how much may be asked of it, and how long it may be silent.
 */
import {
  AdaptiveRate,
  CircuitBreaker,
  type CircuitOutcome,
  type CircuitVerdict,
  classifyOutcome,
  type Clock,
  type Deadline,
  firstChunk,
  type HttpStatusError,
  type Policy,
  RateLimiter,
  timeout,
  type Timeout,
} from "sluice";
import { estimateTokens, openCompletion, type Prompt } from "./completion.ts";
import { TokenStream } from "./token-stream.ts";

export interface ProviderOptions {
  /** Tokens that may be asked for at once, and in a minute. Halved with each 429, and a tenth more after each quiet while. */
  readonly tokensPerMinute: number;
  /** From the request to the first token. @default 10_000 */
  readonly firstTokenMs?: number;
  /** From one token to the next. @default 5_000 */
  readonly stallMs?: number;
  /** @default one that opens after three failures in a row, for ten seconds */
  readonly breaker?: Policy;
  readonly clock?: Clock | undefined;
}

export class Provider {
  readonly name: string;
  readonly breaker: Policy;
  readonly rate: AdaptiveRate;
  readonly #url: string;
  readonly #firstToken: Timeout;
  readonly #stall: Timeout;
  readonly #clock: Clock | undefined;

  constructor(name: string, url: string, options: ProviderOptions) {
    const { tokensPerMinute: count, firstTokenMs = 10_000, stallMs = 5_000, clock } = options;
    const limiter = new RateLimiter({ count, perMs: 60_000, burst: count, clock });
    this.name = name;
    this.#url = url;
    this.breaker = options.breaker ?? new CircuitBreaker({ failures: 3, cooldownMs: 10_000, classify, clock });
    this.rate = new AdaptiveRate(limiter, { perMs: 60_000, maxCount: count, clock });
    this.#firstToken = timeout(firstTokenMs, { clock });
    this.#stall = timeout(stallMs, { clock });
    this.#clock = clock;
  }

  /** Resolves with the first token. `attempt` ends it until then, `deadline` until its end. */
  open(prompt: Prompt, attempt: AbortSignal, deadline: Deadline): Promise<TokenStream> {
    const connection = new AbortController();
    // The signal of an attempt never aborts once it has won, so it is not enough for what goes on streaming.
    const caller = AbortSignal.any([attempt, deadline.signal]);
    const signal = AbortSignal.any([caller, connection.signal]);
    return new Promise((resolve, reject) => {
      const call = async (): Promise<void> => {
        const chunks = await this.rate.run(() => this.#begin(prompt, signal), {
          cost: estimateTokens(prompt),
          signal,
          timeoutMs: deadline.leftMs, // what can't come in time is not waited for
        });
        const stream = new TokenStream(this.name, chunks, { connection, signal, stall: this.#stall });
        resolve(stream);
        await stream.ended; // a provider that hangs or breaks off in the middle has failed, too
      };
      this.breaker.run(call, { signal: caller }).catch(reject);
    });
  }

  #begin(prompt: Prompt, signal: AbortSignal): Promise<AsyncIterator<string>> {
    return this.#firstToken.run(
      async ({ signal: own }) => {
        const whole = AbortSignal.any([own, signal]);
        return firstChunk(await openCompletion(this.#url, prompt, whole, this.#clock), { signal: whole });
      },
      { signal },
    );
  }
}

/** Who says 429 is well: its rate is what has to change. */
function classify(outcome: CircuitOutcome): CircuitVerdict {
  const isLimited = outcome.status === "rejected" && (outcome.reason as HttpStatusError | undefined)?.status === 429;
  return isLimited ? "ignore" : classifyOutcome(outcome);
}
