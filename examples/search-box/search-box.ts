/**
 * A search as one types: asks once the typing pauses, asks for the last question only, and shows no answer that comes
 * after a newer one was asked for. It knows no page: what it shows goes to a `SearchView`.
 */
import { ClearedError, type Clock, debounce, type Latest, latest, type Paced, SupersededError, timeout } from "sluice";

/** Must end soon after its signal aborts; if it doesn't, what it finds is not shown all the same. */
export type Find = (question: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface SearchView {
  /** Nothing is asked: neither results nor errors are to be seen. */
  empty(): void;
  asking(question: string): void;
  found(question: string, results: readonly string[]): void;
  failed(question: string, error: unknown): void;
}

export interface SearchBoxOptions {
  /** How long the typing must pause. @default 250 */
  readonly waitMs?: number;
  /** How long an answer may take. @default 5_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

export class SearchBox {
  // I1  what is shown is the answer to the question that was asked last, or an older one's while that is under way
  readonly #view: SearchView;
  readonly #ask: Latest<unknown, [question: string], readonly string[]>;
  readonly #askSoon: Paced<unknown, [question: string], void>;

  constructor(find: Find, view: SearchView, options: SearchBoxOptions = {}) {
    const { waitMs = 250, timeoutMs = 5_000, clock } = options;
    const limit = timeout(timeoutMs, { clock });
    this.#view = view;
    this.#ask = latest(({ signal }, question) => limit.run((call) => find(question, call.signal), { signal }));
    this.#askSoon = debounce((question) => void this.#show(question), waitMs, { clock });
  }

  /** To be called with all that is in the box, each time that this has changed. */
  type(text: string): void {
    const question = text.trim();
    if (question === "") {
      this.close();
      this.#view.empty();
    } else this.#askSoon(question);
  }

  /** Asks at once, as when Enter is pressed. */
  submit(): void {
    this.#askSoon.flush();
  }

  /** Ends what is under way; for when the box is taken away. */
  close(): void {
    this.#askSoon.cancel();
    this.#ask.cancel();
  }

  async #show(question: string): Promise<void> {
    try {
      this.#view.asking(question);
      this.#view.found(question, await this.#ask(question));
    } catch (error) {
      if (!(error instanceof SupersededError || error instanceof ClearedError)) this.#view.failed(question, error);
    }
  }
}

/** Asks the server that this page came from. */
export function findAt(url: string): Find {
  return async (question, signal) => {
    const response = await fetch(`${url}?q=${encodeURIComponent(question)}`, { signal });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return (await response.json()) as readonly string[];
  };
}
