/** An embedding service on loopback, with the limits such a service has, and a count of what it was asked. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ProviderOptions {
  /** Requests it answers at a time; further ones get 429. */
  readonly maxConcurrent: number;
  /** These items are answered with 503 the first time, and well after that. */
  readonly flaky?: (item: number) => boolean;
  /** These are answered with 422, always. */
  readonly refused?: (item: number) => boolean;
  /** What it works on is answered after this. */
  readonly until?: Promise<unknown>;
}

export class Provider {
  readonly counts = { served: 0, unavailable: 0, limited: 0, refused: 0, peak: 0 };
  readonly #options: ProviderOptions;
  readonly #seen = new Set<number>();
  readonly #server: Server;
  #running = 0;

  private constructor(options: ProviderOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      request.resume();
      this.#answer(Number(request.url?.slice(1)), response);
    });
  }

  static async start(options: ProviderOptions): Promise<Provider> {
    const provider = new Provider(options);
    provider.#server.listen(0, "127.0.0.1");
    await once(provider.#server, "listening");
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #answer(item: number, response: ServerResponse): void {
    const { maxConcurrent, flaky, refused, until } = this.#options;
    if (this.#running === maxConcurrent) return this.#refuse("limited", 429, response);
    if (refused?.(item) === true) return this.#refuse("refused", 422, response);
    const isNew = !this.#seen.has(item);
    this.#seen.add(item);
    if (isNew && flaky?.(item) === true) return this.#refuse("unavailable", 503, response);
    this.#running += 1;
    this.counts.peak = Math.max(this.counts.peak, this.#running);
    const answer = (): void => {
      this.#running -= 1;
      this.counts.served += 1;
      response.end(`[${item}]`);
    };
    if (until === undefined) setImmediate(answer);
    else void until.then(answer);
  }

  #refuse(count: "limited" | "refused" | "unavailable", status: number, response: ServerResponse): void {
    this.counts[count] += 1;
    response.writeHead(status, status === 429 ? { "retry-after": "0" } : {}).end();
  }
}
