/** A server of language models on loopback that misbehaves as told, and tells what became of each request. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Queue } from "sluice";

export interface Behaviour {
  readonly status?: number;
  readonly retryAfter?: string;
  /** Before the first token. */
  readonly until?: Promise<unknown>;
  readonly tokens?: readonly string[];
  /** After them, and before `more`. */
  readonly rest?: Promise<unknown>;
  readonly more?: readonly string[];
  /** After all of that. @default "done" */
  readonly end?: "done" | "hang" | "reset" | "break off";
}

export interface Exchange {
  readonly model: string;
  /** "whole" once all has been sent, "cut" if the connection closed before. */
  readonly closed: Promise<"whole" | "cut">;
}

export class ModelServer {
  /** Requests so far, by model. */
  readonly asked: Record<string, number> = {};
  /** Those nobody has taken yet. */
  readonly exchanges = new Queue<Exchange>(10_000);
  readonly #plans = new Map<string, Behaviour[]>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<ModelServer> {
    const server = new ModelServer();
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  url(model: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${model}`;
  }

  /** How `model` answers from now on: each in its turn, and the last for ever. */
  behave(model: string, ...plan: readonly [Behaviour, ...Behaviour[]]): void {
    this.#plans.set(model, [...plan]);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const model = request.url?.slice(1) ?? "";
    const closed = once(response, "close").then(() => (response.writableFinished ? "whole" : "cut"));
    this.asked[model] = (this.asked[model] ?? 0) + 1;
    this.exchanges.offer({ model, closed });
    request.resume();
    const plan = this.#plans.get(model) ?? [{}];
    const behaviour = (plan.length > 1 ? plan.shift() : plan[0]) ?? {};
    const { status, retryAfter, until, rest, end = "done" } = behaviour;
    if (status !== undefined) {
      response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end();
      return;
    }
    await until;
    this.#say(response, behaviour.tokens);
    await rest;
    this.#say(response, behaviour.more);
    if (end === "done") response.end("data: [DONE]\n\n");
    else if (end === "break off") response.end();
    else if (end === "reset") request.socket.resetAndDestroy();
  }

  #say(response: ServerResponse, tokens: readonly string[] = []): void {
    if (!response.headersSent) response.setHeader("content-type", "text/event-stream");
    for (const token of tokens) response.write(`data: ${JSON.stringify(token)}\n\n`);
  }
}
