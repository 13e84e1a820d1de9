/** What the tests of the client stand on: a server that misbehaves, and time that moves when told to. */
import { setImmediate as turn } from "node:timers/promises";
import { VirtualClock } from "sluice/testing";
import { expect } from "vitest";
import { LlmClient, type LlmClientOptions } from "./llm-client.ts";
import { type Exchange, ModelServer } from "./model-server.ts";
import { Provider, type ProviderOptions } from "./provider.ts";
import type { TokenStream } from "./token-stream.ts";

/** 100 tokens by the estimate. */
export const prompt = { text: "Say hello.", maxTokens: 97 };
export const HELLO = { tokens: ["Hel", "lo", "!"] };
export const never = new Promise<never>(() => {});

export class Stage {
  readonly clock = new VirtualClock();
  readonly server: ModelServer;

  constructor(server: ModelServer) {
    this.server = server;
  }

  static async open(): Promise<Stage> {
    return new Stage(await ModelServer.start());
  }

  provider(name: string, options: Partial<ProviderOptions> = {}): Provider {
    return new Provider(name, this.server.url(name), { tokensPerMinute: 1_000_000, clock: this.clock, ...options });
  }

  client(providers: readonly Provider[], options: LlmClientOptions = {}): LlmClient {
    return new LlmClient(providers, { clock: this.clock, random: () => 1, ...options });
  }

  /** The next request to arrive. */
  async asked(model: string): Promise<Exchange> {
    const exchange = await this.server.exchanges.take();
    expect(exchange.model).toBe(model);
    return exchange;
  }

  /** Time goes on while what it waits for comes by the network. */
  async passing<T>(result: Promise<T>, stepMs = 100): Promise<T> {
    const state = { isOver: false };
    const over = (): void => void (state.isOver = true);
    result.then(over, over);
    while (!state.isOver) {
      await this.clock.advance(stepMs);
      await turn();
    }
    return result;
  }
}

export async function read(stream: TokenStream): Promise<string> {
  let text = "";
  for await (const token of stream) text += token;
  return text;
}
