/** A collector of logs on loopback, which can be made slow or dead, and a count of what has come. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** `fine` answers at once, `hung` when it is fine again, `busy` with 503, `strict` with 400; `deaf` takes the batch and breaks the connection. */
export type Mood = "fine" | "hung" | "busy" | "strict" | "deaf";

export class Collector {
  readonly messages: string[] = [];
  /** Requests, those that were repeated included, and the sizes of batches. */
  requests = 0;
  readonly batches: number[] = [];
  /** What the source says it has lost. */
  lost = 0;
  readonly #seen = new Set<unknown>();
  readonly #server: Server;
  readonly #hung: (() => void)[] = [];
  readonly #waiting: { readonly isDone: () => boolean; readonly resolve: () => void }[] = [];
  #mood: Mood = "fine";

  private constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  set mood(mood: Mood) {
    this.#mood = mood;
    if (mood !== "hung") for (const answer of this.#hung.splice(0)) answer();
  }

  /** Resolves when `isDone`, which is asked after each request. */
  until(isDone: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ isDone, resolve });
      this.#look();
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk as string;
    this.requests += 1;
    if (this.#mood === "busy") response.writeHead(503).end();
    else if (this.#mood === "strict") response.writeHead(400).end();
    else {
      this.#keep(request.headers, JSON.parse(body) as readonly { readonly message: string }[]);
      if (this.#mood === "hung") this.#hung.push(() => response.end());
      else if (this.#mood === "deaf") request.socket.destroy();
      else response.end();
    }
    this.#look();
  }

  #keep(headers: IncomingMessage["headers"], records: readonly { readonly message: string }[]): void {
    const key = headers["idempotency-key"];
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.lost = Number(headers["x-log-lost"]);
    this.batches.push(records.length);
    this.messages.push(...records.map(({ message }) => message));
  }

  #look(): void {
    for (const each of this.#waiting.splice(0)) {
      if (each.isDone()) each.resolve();
      else this.#waiting.push(each);
    }
  }
}
