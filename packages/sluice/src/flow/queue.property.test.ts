import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { WhenFull } from "./queue-options.ts";
import { Queue } from "./queue.ts";

const STEPS = ["put", "hurried put", "offer", "take", "hurried take", "poll", "pollBatch", "abort", "10 ms"] as const;
const ENDS = ["close", "fail"] as const;

type Step = (typeof STEPS)[number] | (typeof ENDS)[number];

it("does what the model does under any plan of puts, takes, aborts, timeouts and ends", () => {
  const rare = { weight: 1, arbitrary: fc.constantFrom<Step>(...ENDS) };
  const step = fc.oneof({ weight: 30, arbitrary: fc.constantFrom<Step>(...STEPS) }, rare);
  const plans = fc.asyncProperty(
    fc.integer({ min: 0, max: 3 }),
    fc.constantFrom("wait", "reject", "drop-newest", "drop-oldest"),
    fc.array(step, { maxLength: 40 }),
    play,
  );
  return fc.assert(plans, { numRuns: 1_000 });
});

async function play(capacity: number, whenFull: WhenFull, plan: readonly Step[]): Promise<void> {
  const clock = new VirtualClock();
  const evicted: number[] = [];
  const onUndelivered = (id: number, reason: unknown): unknown => reason === "failed" || evicted.push(id);
  const queue = new Queue<number>(capacity, { whenFull, clock, onUndelivered });
  const model = new Model(capacity, whenFull);
  const outcomes = new Map<number, unknown>();
  let call = new AbortController();
  for (const [id, step] of [...plan, "abort" as const].entries()) {
    const { signal } = call;
    const note = (outcome: unknown): unknown => outcomes.set(id, outcome);
    const noteError = (error: unknown): unknown => note((error as { code?: string }).code ?? error);
    const [verb, hurried] = [step.replace("hurried ", ""), step.startsWith("hurried ")];
    const options = { signal, timeoutMs: hurried ? 10 : undefined };
    if (verb === "put") queue.put(id, options).then(note, noteError);
    else if (verb === "take") queue.take(options).then(note, noteError);
    else if (step === "offer") note(queue.offer(id));
    else if (step === "poll") note(queue.poll());
    else if (step === "pollBatch") note(queue.pollBatch(2));
    else if (step === "close") queue.close();
    else if (step === "fail") queue.fail("failed");
    else if (step === "abort") call = (call.abort("aborted"), new AbortController());
    else await clock.advance(10);
    model.act(id, verb, hurried, clock.now());
    const { size, oldestAgeMs, waitingProducers, waitingConsumers, closed } = queue.stats();
    expect({ size, oldestAgeMs, waitingProducers, waitingConsumers, closed }).toEqual(model.stats(clock.now()));
    const waiting = waitingProducers + waitingConsumers;
    expect(getEventListeners(signal, "abort")).toHaveLength(waiting > 0 ? 1 : 0);
    expect(clock.timers).toBe(model.hurried);
  }
  await turn();
  expect([...outcomes].toSorted(byId)).toEqual([...model.outcomes].toSorted(byId));
  expect([queue.stats().accepted, queue.stats().taken, evicted]).toEqual([...model.counts(), model.evicted]);
}

interface Call {
  readonly id: number;
  readonly hurried: boolean;
  readonly at: number;
}

/** The same with arrays, in which every call is told its outcome at once. */
class Model {
  readonly outcomes = new Map<number, unknown>();
  readonly evicted: number[] = [];
  #lost = 0;
  readonly #capacity: number;
  readonly #whenFull: string;
  #items: Call[] = [];
  #producers: Call[] = [];
  #consumers: Call[] = [];
  #end: string | undefined;

  constructor(capacity: number, whenFull: string) {
    this.#capacity = capacity;
    this.#whenFull = whenFull;
  }

  get hurried(): number {
    return [...this.#producers, ...this.#consumers].filter(({ hurried }) => hurried).length;
  }

  stats(now: number): Record<string, unknown> {
    return {
      size: this.#items.length,
      oldestAgeMs: now - (this.#items[0] ?? this.#producers[0] ?? { at: now }).at,
      waitingProducers: this.#producers.length,
      waitingConsumers: this.#consumers.length,
      closed: this.#end !== undefined,
    };
  }

  counts(): [accepted: number, taken: number] {
    const outcomes = [...this.outcomes.values()].flat();
    const taken = outcomes.filter((outcome) => typeof outcome === "number").length;
    return [taken + this.#items.length + this.evicted.length + this.#lost, taken];
  }

  act(id: number, verb: string, hurried: boolean, at: number): void {
    const call = { id, hurried, at };
    if (verb === "put" || verb === "offer") this.#bring(call, verb);
    else if (verb === "poll") this.outcomes.set(id, this.#next());
    else if (verb === "pollBatch") this.outcomes.set(id, this.#nextTwo());
    else if (verb === "take") this.#take(call);
    else if (verb === "abort") this.#leave("aborted", () => true);
    else if (verb === "10 ms") this.#leave("TIMEOUT", (each) => each.hurried);
    else if (verb === "fail" || this.#end === undefined) this.#finish(verb === "fail" ? "failed" : "CLOSED");
  }

  #bring(call: Call, verb: "put" | "offer"): void {
    const isPut = verb === "put";
    if (this.#end !== undefined) return void this.outcomes.set(call.id, isPut ? this.#end : false);
    const consumer = this.#consumers.shift();
    if (consumer !== undefined) this.outcomes.set(consumer.id, call.id);
    else if (this.#items.length < this.#capacity) this.#items.push(call);
    else if (isPut && this.#whenFull === "wait") return void this.#producers.push(call);
    else if (this.#whenFull === "drop-oldest" && this.#items.length > 0) this.#evictFor(call);
    else return void this.outcomes.set(call.id, isPut && this.#whenFull === "reject" ? "QUEUE_FULL" : false);
    this.outcomes.set(call.id, true);
  }

  #evictFor(call: Call): void {
    this.evicted.push(...this.#items.splice(0, 1).map(({ id }) => id));
    this.#items.push(call);
  }

  #take(call: Call): void {
    const isThere = this.#items.length > 0 || this.#producers.length > 0;
    if (this.#end !== "failed" && isThere) this.outcomes.set(call.id, this.#next());
    else if (this.#end !== undefined) this.outcomes.set(call.id, this.#end);
    else this.#consumers.push(call);
  }

  #nextTwo(): number[] {
    return [this.#next(), this.#next()].filter((each) => each !== undefined);
  }

  #next(): number | undefined {
    const producer = this.#producers.shift();
    if (producer !== undefined) {
      this.#items.push(producer);
      this.outcomes.set(producer.id, true);
    }
    return this.#items.shift()?.id;
  }

  #finish(end: string): void {
    this.#end = end;
    if (end === "failed") this.#lost += this.#items.splice(0).length;
    this.#leave(end, () => true);
  }

  #leave(outcome: string, leaves: (call: Call) => boolean): void {
    for (const call of [...this.#producers, ...this.#consumers]) if (leaves(call)) this.outcomes.set(call.id, outcome);
    this.#producers = this.#producers.filter((call) => !leaves(call));
    this.#consumers = this.#consumers.filter((call) => !leaves(call));
  }
}

function byId([a]: [number, unknown], [b]: [number, unknown]): number {
  return a - b;
}
