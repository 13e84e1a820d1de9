/** The way to the engine: into a thread of its own, or, for a database in memory, on this one. */
import { Worker } from "node:worker_threads";
import type { Clock } from "sluice";
import type { Engine } from "./engine.ts";
import { StoreFailedError } from "./errors.ts";
import { toError, type Failure } from "./failure.ts";
import type { Batch, Reply } from "./operation.ts";
import { openEngine, type Setup } from "./setup.ts";

export interface Link {
  /** One at a time. Rejects with `DataCloneError` if it can't be copied, else only when the engine is gone for good. */
  send(batch: Batch): Promise<Reply>;
  close(): Promise<void>;
  /** Ends it although it may be busy. */
  kill(): Promise<void>;
}

export async function openInline(setup: Setup, clock: Clock): Promise<Link> {
  const engine = await openEngine(setup, () => clock.now());
  return new InlineLink(engine);
}

class InlineLink implements Link {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async send(batch: Batch): Promise<Reply> {
    return this.#engine.run(structuredClone(batch));
  }

  async close(): Promise<void> {
    this.#engine.close();
  }

  async kill(): Promise<void> {
    this.#engine.close();
  }
}

/** Source runs as it stands, the build has JavaScript beside this file. */
const THREAD = import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js";

export async function openThread(setup: Setup, name: string): Promise<Link> {
  const worker = new Worker(new URL(THREAD, import.meta.url), { workerData: setup, name, ...flags() });
  const link = new ThreadLink(worker);
  const { failure } = await link.opened;
  if (failure === undefined) return link;
  await link.close();
  throw toError(failure);
}

const LOADING = /^(--conditions|-C|--import|--require|-r)(?<value>=|$)/;

/** Code that came by `--eval` or standard input may have a flag that no file may have, and a thread inherits it. */
function flags(): { readonly execArgv?: string[] } {
  const { execArgv } = process;
  if (!execArgv.some((flag) => flag.startsWith("--input-type"))) return {};
  const isValue = (index: number): boolean => LOADING.exec(execArgv[index - 1] ?? "")?.groups?.["value"] === "";
  return { execArgv: execArgv.filter((flag, index) => LOADING.test(flag) || isValue(index)) };
}

interface Waiting {
  resolve(message: unknown): void;
  reject(error: Error): void;
}

class ThreadLink implements Link {
  // I1  the thread keeps the process alive exactly while somebody waits for it
  readonly opened: Promise<{ readonly failure: Failure | undefined }>;
  readonly #worker: Worker;
  readonly #exited: Promise<unknown>;
  #waiting: Waiting | undefined;
  #lost: StoreFailedError | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    this.#exited = new Promise((resolve) => worker.once("exit", resolve));
    worker.on("message", (message) => this.#settle()?.resolve(message));
    worker.once("error", (error) => this.#lose(new StoreFailedError(String(error), { cause: error })));
    worker.once("exit", (code) => this.#lose(new StoreFailedError(`it exited with ${code}`)));
    this.opened = this.#wait(() => {}) as typeof this.opened;
  }

  send(batch: Batch): Promise<Reply> {
    return this.#wait(() => this.#worker.postMessage(batch)) as Promise<Reply>;
  }

  async close(): Promise<void> {
    this.#worker.ref();
    this.#worker.postMessage(undefined);
    await this.#exited;
  }

  async kill(): Promise<void> {
    await this.#worker.terminate();
  }

  #wait(act: () => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) throw this.#lost;
      act();
      this.#worker.ref();
      this.#waiting = { resolve, reject };
    });
  }

  #settle(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#worker.unref();
    return waiting;
  }

  #lose(error: StoreFailedError): void {
    this.#lost ??= error;
    this.#settle()?.reject(this.#lost);
  }
}
