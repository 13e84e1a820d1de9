/** A server on loopback that hands out a page and answers its questions, each when it is told to. */
import { EventEmitter, once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const THINGS = ["oven", "oven glove", "over-door hook", "egg cup", "grill pan", "olive fork", "onion box", "whisk"];

/** When the answer to a question is ready. */
export type Readiness = (question: string) => PromiseLike<unknown>;

export class SearchServer {
  /** Questions in the order they came, and of these the ones whose asker left before the answer was ready. */
  readonly asked: string[] = [];
  readonly left: string[] = [];
  readonly #files: ReadonlyMap<string, string>;
  readonly #ready: Readiness;
  readonly #server: Server;
  readonly #changes = new EventEmitter();

  private constructor(files: ReadonlyMap<string, string>, ready: Readiness) {
    this.#files = files;
    this.#ready = ready;
    this.#server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
      if (pathname === "/search") void this.#answer(searchParams.get("q") ?? "", response);
      else this.#serve(pathname, response);
    });
  }

  static async start(files: ReadonlyMap<string, string>, ready: Readiness): Promise<SearchServer> {
    const server = new SearchServer(files, ready);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Resolves once this question has been asked, or its asker has left. */
  async heard(what: "asked" | "left", question: string): Promise<void> {
    while (!this[what].includes(question)) await once(this.#changes, "change");
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(question: string, response: ServerResponse): Promise<void> {
    response.once("close", () => {
      if (!response.writableFinished) this.#note(this.left, question);
    });
    this.#note(this.asked, question);
    await this.#ready(question);
    if (response.destroyed) return;
    if (question === "!") return void response.writeHead(500).end();
    const found = THINGS.filter((thing) => thing.startsWith(question));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(found));
  }

  #note(list: string[], question: string): void {
    list.push(question);
    this.#changes.emit("change");
  }

  #serve(path: string, response: ServerResponse): void {
    const file = this.#files.get(path);
    if (file === undefined) return void response.writeHead(404).end();
    const type = path.endsWith(".js") ? "text/javascript" : "text/html";
    response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(file);
  }
}
