/** A case of the suite, and what it is run against. */
import type { Clock } from "../../clock/clock.ts";
import type { BoundedQueue } from "../queue-contract.ts";
import type { QueueOptions } from "../queue-options.ts";

/** A clock that moves only when told to, and lets everything go on that can. */
export interface ManualClock extends Clock {
  readonly timers: number;
  advance(ms: number): Promise<void>;
}

/** What is asked of a queue, whoever made it. */
export type AnyQueue<T> = Pick<BoundedQueue<T>, keyof BoundedQueue<T>>;

export interface QueueSubject {
  /** Opens the titles: `PriorityQueue`. */
  readonly name: string;
  /** Items that are put without options must leave in the order of coming. */
  readonly open: <T>(capacity: number, options: QueueOptions<T>) => AnyQueue<T>;
  readonly newClock: () => ManualClock;
  /** What it doesn't do, and why. Cases that need it are replaced by what holds instead. */
  readonly lacks?: QueueLacks | undefined;
}

export interface QueueLacks {
  /** It refuses a capacity of 0. */
  readonly handOff?: string | undefined;
}

export interface QueueCase {
  readonly title: string;
  /** Rejects if the queue fails the case. */
  readonly run: () => Promise<void>;
}

export interface Stage {
  readonly open: <T = string>(capacity: number, options?: QueueOptions<T>) => AnyQueue<T>;
  readonly clock: ManualClock;
}

type Fact = (stage: Stage) => Promise<void>;

/** What has to be shown, by title. */
export type Facts = Readonly<Record<string, Fact | Conditional>>;

export interface Conditional {
  readonly needs?: keyof QueueLacks;
  readonly insteadOf?: keyof QueueLacks;
  readonly fact: Fact;
}

/** Throws unless the two are made of the same values. */
export function same(actual: unknown, expected: unknown): void {
  if (!isSame(actual, expected)) throw new Error(`expected ${show(expected)}, got ${show(actual)}`);
}

/** The code or the reason of a rejection, or the value. */
export function outcome(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => (error as { code?: string } | undefined)?.code ?? error);
}

/** What `call` throws, by its name. */
export function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return (error as Error).name;
  }
  return "nothing";
}

export function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `item ${index + 1}`);
}

function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || a instanceof Error) return false;
  const [entries, others] = [Object.entries(a), Object.entries(b)];
  return entries.length === others.length && entries.every(([key, value]) => isSame(value, Reflect.get(b, key)));
}

function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return Array.isArray(value) ? `[${value.map(show).join(", ")}]` : (JSON.stringify(value) ?? String(value));
}
