/**
 * A payment service on loopback that knows a repetition by its key, declines some cards, and answers now and then too
 * late, not at all, or that it is busy.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/**
 * Of one request: `late`: it is done, but answered only when it is asked again · `lost`: it is done, and the connection
 * breaks · `busy`: it isn't done · `declined`: it never will be.
 */
export type Behaviour = "well" | "late" | "lost" | "busy" | "declined";

export class PaymentServer {
  /** What was done, in cents; refunds are negative. What is done twice is in twice. */
  readonly entries: { readonly key: string; readonly cents: number }[] = [];
  /** The keys of what it was asked. */
  readonly requests: string[] = [];
  /** @default well, always */
  behave: (key: string, request: number) => Behaviour = () => "well";
  readonly #done = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  readonly #late = new Map<string, ServerResponse>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<PaymentServer> {
    const server = new PaymentServer();
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What is left of an order's charge once its refund is taken off. */
  balance(order: string): number {
    const own = this.entries.filter(({ key }) => key === `charge-${order}` || key === `refund-${order}`);
    return own.reduce((sum, { cents }) => sum + cents, 0);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { cents } = (await json(request)) as { readonly cents: number };
    // Who sends no key can't be told from anybody else.
    const key = String(request.headers["idempotency-key"] ?? `none-${this.requests.length}`);
    const nth = (this.#seen.get(key) ?? 0) + 1;
    this.#seen.set(key, nth);
    this.requests.push(key);
    this.#late.get(key)?.end("done");
    const behaviour = this.behave(key, nth);
    if (behaviour === "busy") return void response.writeHead(503).end();
    if (behaviour === "declined") return void response.writeHead(402).end();
    if (!this.#done.has(key)) {
      this.#done.set(key, cents);
      this.entries.push({ key, cents: request.url === "/refunds" ? -cents : cents });
    }
    if (behaviour === "late") this.#late.set(key, response);
    else if (behaviour === "lost") request.socket.destroy();
    else response.end("done");
  }
}
