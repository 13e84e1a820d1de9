/**
 * Group commit: what is asked while a batch is under way goes out together in the next one, so that all of it shares
 * one message and one fsync. Each operation is held by its caller, who awaits it; that alone bounds how many there are.
 */
import { setImmediate as afterThisTurn } from "node:timers";
import type { Clock } from "sluice";
import type { Listeners } from "../listeners.ts";
import { toError } from "./failure.ts";
import type { Link } from "./link.ts";
import type { Answers, Operation, Reply } from "./operation.ts";

interface Asked {
  readonly operation: Operation;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export type OutboxStats = {
  /** For the next batch. */
  readonly waiting: number;
  readonly batches: number;
  readonly operations: number;
};

export class Outbox {
  // I1  at most one batch is under way
  // I2  while anything is asked, a batch is under way or about to go out, and the clock knows of it
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #listeners: Listeners;
  #asked: Asked[] = [];
  #isBusy = false;
  #idle: PromiseWithResolvers<void> | undefined;
  #batches = 0;
  #operations = 0;

  constructor(link: Link, clock: Clock, listeners: Listeners) {
    this.#link = link;
    this.#clock = clock;
    this.#listeners = listeners;
  }

  ask<K extends Operation["kind"]>(operation: Extract<Operation, { readonly kind: K }>): Promise<Answers[K]> {
    return new Promise<unknown>((resolve, reject) => {
      this.#asked.push({ operation, resolve, reject });
      if (this.#isBusy) return;
      this.#isBusy = true;
      this.#idle = Promise.withResolvers();
      void this.#clock.track(this.#idle.promise);
      afterThisTurn(this.#flush);
    }) as Promise<Answers[K]>;
  }

  stats(): OutboxStats {
    return { waiting: this.#asked.length, batches: this.#batches, operations: this.#operations };
  }

  /** Resolves when everything that was asked has been answered. */
  async idle(): Promise<void> {
    await this.#idle?.promise;
  }

  readonly #flush = (): void => {
    const batch = this.#asked;
    this.#asked = [];
    this.#batches += 1;
    this.#operations += batch.length;
    void this.#send(batch).finally(() => {
      if (this.#asked.length > 0) {
        afterThisTurn(this.#flush);
      } else {
        this.#isBusy = false;
        this.#idle?.resolve();
      }
    });
  };

  /** Never rejects. */
  async #send(batch: readonly Asked[]): Promise<void> {
    try {
      const operations = batch.map(({ operation }) => operation);
      const reply = await this.#link.send({ now: Math.floor(this.#clock.wallNow()), operations });
      this.#answer(batch, reply);
    } catch (error) {
      const rest = isNoCopy(error) ? batch.filter(canBeCopied) : [];
      if (rest.length > 0 && rest.length < batch.length) return this.#send(rest);
      for (const { reject } of rest.length === 0 && isNoCopy(error) ? [] : batch) reject(error);
    }
  }

  #answer(batch: readonly Asked[], { answers, ready }: Reply): void {
    for (const [index, { resolve, reject }] of batch.entries()) {
      const answer = answers[index];
      if (answer !== undefined && "failure" in answer) reject(toError(answer.failure));
      else resolve(answer?.value);
    }
    this.#listeners.tell(ready);
  }
}

function isNoCopy(error: unknown): boolean {
  return error instanceof DOMException && error.name === "DataCloneError";
}

/** If not, its caller has been told. */
function canBeCopied({ operation, reject }: Asked): boolean {
  try {
    structuredClone(operation);
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}
