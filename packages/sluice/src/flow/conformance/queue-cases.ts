/**
 * What every queue must do, as cases for any test runner: `for (const { title, run } of queueCases(subject)) it(title, run)`.
 * For who writes a queue of their own with this contract, or one around ours.
 */
import { type Conditional, type Facts, type QueueCase, type QueueSubject, type Stage } from "./case.ts";
import { consuming } from "./consuming.ts";
import { ending } from "./ending.ts";
import { filling } from "./filling.ts";
import { passing } from "./passing.ts";
import { reserving } from "./reserving.ts";
import { walking } from "./walking.ts";

export type { AnyQueue, ManualClock, QueueCase, QueueLacks, QueueSubject } from "./case.ts";

/** A case passes if what its `run` returns resolves. Each makes its own queue and its own clock. */
export function queueCases(subject: QueueSubject): QueueCase[] {
  return [passing, filling, reserving, ending, consuming, walking].flatMap((facts) => toCases(facts, subject));
}

function toCases(facts: Facts, subject: QueueSubject): QueueCase[] {
  const { name, lacks = {} } = subject;
  return Object.entries(facts).flatMap(([title, value]) => {
    const { needs, insteadOf, fact }: Conditional = typeof value === "function" ? { fact: value } : value;
    if (needs !== undefined && lacks[needs] !== undefined) return [];
    if (insteadOf !== undefined && lacks[insteadOf] === undefined) return [];
    const why = insteadOf === undefined ? "" : ` (${lacks[insteadOf]})`;
    return [{ title: `${name} ${title}${why}`, run: () => fact(stage(subject)) }];
  });
}

function stage(subject: QueueSubject): Stage {
  const clock = subject.newClock();
  return { clock, open: (capacity, options) => subject.open(capacity, { clock, ...options }) };
}
