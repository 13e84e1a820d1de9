// A numbered stream of events over HTTP, sent again until answered with 2xx, as a well-behaved sender does.
import { setTimeout as sleep } from "node:timers/promises";
import { GROUPS } from "./config.ts";

const SENDERS = 4;
const PAUSE_MS = 20;
const RETRY_MS = 50;
const BATCH = 4;

export class Feed {
  /** Numbers of the events that got a 2xx, accepted or told to be duplicates. */
  readonly accepted = new Set<number>();
  readonly #url: string;
  #next = 1;
  #stopped = false;
  #senders: Promise<unknown> = Promise.resolve();

  constructor(url: string) {
    this.#url = url;
  }

  start(): void {
    this.#senders = Promise.all(Array.from({ length: SENDERS }, () => this.#send()));
  }

  /** Begins no batch more, and resolves when each that was begun has its 2xx. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#senders;
  }

  async #send(): Promise<void> {
    while (!this.#stopped) {
      const numbers = Array.from({ length: BATCH }, (_, index) => this.#next + index);
      this.#next += BATCH;
      while (!(await this.#post(numbers))) await sleep(RETRY_MS);
      for (const number of numbers) this.accepted.add(number);
      await sleep(PAUSE_MS);
    }
  }

  async #post(numbers: readonly number[]): Promise<boolean> {
    const events = numbers.map((number) => ({
      specversion: "1.0",
      id: `${number}`,
      source: "/drill",
      type: "drill.tick",
      data: { group: number % GROUPS },
    }));
    try {
      const response = await fetch(`${this.#url}/v1/events`, {
        method: "POST",
        headers: { "content-type": "application/cloudevents-batch+json" },
        body: JSON.stringify(events),
        signal: AbortSignal.timeout(5_000),
      });
      const answer = await response.text();
      if (response.status >= 400 && response.status < 500 && response.status !== 429) throw new Refused(answer);
      return response.ok;
    } catch (error) {
      if (error instanceof Refused) throw error;
      return false; // nobody answers: it has just been killed
    }
  }
}

class Refused extends Error {}
