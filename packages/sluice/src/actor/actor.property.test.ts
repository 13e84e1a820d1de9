import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { WhenFull } from "../flow/queue-options.ts";
import { explore } from "../testing/explore.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { Decision } from "./actor-options.ts";
import { Actor } from "./actor.ts";

const STEPS = [
  "tell",
  "tryTell",
  "ask",
  "hurried ask",
  "hurried tell",
  "finish",
  "finish",
  "fail",
  "abort",
  "10 ms",
  "clear",
  "settle",
] as const;
const ENDS = ["close", "stop"] as const;

type Step = (typeof STEPS)[number] | (typeof ENDS)[number];

it("does what the model does under any plan of messages, aborts, timeouts, failures and ends", () => {
  const rare = { weight: 1, arbitrary: fc.constantFrom<Step>(...ENDS) };
  const step = fc.oneof({ weight: 25, arbitrary: fc.constantFrom<Step>(...STEPS) }, rare);
  const plans = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.constantFrom("wait", "reject", "drop-newest", "drop-oldest"),
    fc.constantFrom("resume", "restart", "stop"),
    fc.array(step, { maxLength: 40 }),
    play,
  );
  return fc.assert(plans, { numRuns: 600 });
});

interface Hand {
  readonly id: number;
  finish(): void;
  fail(): void;
}

async function play(capacity: number, whenFull: WhenFull, decision: Decision, plan: readonly Step[]): Promise<void> {
  const clock = new VirtualClock();
  const handled: number[] = [];
  const undelivered: number[] = [];
  const outcomes = new Map<number, unknown>();
  const hands: Hand[] = [];
  let atOnce = 0;
  const receive = async (id: number): Promise<number> => {
    handled.push(id);
    atOnce += 1;
    expect(atOnce).toBe(1);
    try {
      return await new Promise<number>((resolve, reject) => {
        hands.push({ id, finish: () => resolve(id), fail: () => reject(new Error("failed")) });
      });
    } finally {
      atOnce -= 1;
    }
  };
  const actor = new Actor<number, number>(capacity, () => receive, {
    whenFull,
    clock,
    onFailure: () => decision,
    onUndelivered: (id) => void undelivered.push(id),
    backoff: () => 0,
  });
  const model = new Model(capacity, whenFull, decision);
  let call = new AbortController();
  // Of what happens between two turns of the event loop the model knows nothing: each step gets its own.
  for (const [id, step] of [...plan, "abort" as const].entries()) {
    const { signal } = call;
    const note = (outcome: unknown): unknown => outcomes.set(id, outcome);
    const noteError = (error: unknown): unknown =>
      note((error as { code?: string }).code ?? (error instanceof Error ? error.message : error));
    const [verb, hurried] = [step.replace("hurried ", ""), step.startsWith("hurried ")];
    const options = { signal, timeoutMs: hurried ? 10 : undefined };
    if (verb === "tell") actor.tell(id, options).then(note, noteError);
    else if (verb === "ask") actor.ask(id, options).then(note, noteError);
    else if (step === "tryTell") note(actor.tryTell(id));
    else if (step === "finish") hands.shift()?.finish();
    else if (step === "fail") hands.shift()?.fail();
    else if (step === "abort") call = (call.abort("aborted"), new AbortController());
    else if (step === "10 ms") await clock.advance(10);
    else if (step === "clear") actor.clear("cleared");
    else if (step === "close") actor.close();
    else if (step === "stop") actor.abort("stopped");
    model.act(id, verb, hurried);
    await turn();
    const { size, waitingSenders, waitingReplies, running, closed } = actor.stats();
    expect({ size, waitingSenders, waitingReplies, running, closed }).toEqual(model.stats());
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
    expect(clock.timers).toBe(model.hurried);
  }
  expect([...outcomes].toSorted(([a], [b]) => a - b)).toEqual([...model.outcomes].toSorted(([a], [b]) => a - b));
  expect([handled, undelivered]).toEqual([model.handled, model.undelivered]);
  expect(new Set([...handled, ...undelivered]).size).toBe(handled.length + undelivered.length);
  const { completed, skipped } = actor.stats();
  expect([completed, skipped]).toEqual([model.completed, model.skipped]);
}

interface Message {
  readonly id: number;
  readonly isAsk: boolean;
  readonly hurried: boolean;
  /** Whether its sender waits for anything. */
  waits: boolean;
}

/** The same with arrays. */
class Model {
  readonly outcomes = new Map<number, unknown>();
  readonly handled: number[] = [];
  readonly undelivered: number[] = [];
  completed = 0;
  skipped = 0;
  readonly #capacity: number;
  readonly #whenFull: string;
  readonly #decision: string;
  #mailbox: Message[] = [];
  #line: Message[] = [];
  #hand: Message | undefined;
  #isClosed = false;

  constructor(capacity: number, whenFull: string, decision: string) {
    this.#capacity = capacity;
    this.#whenFull = whenFull;
    this.#decision = decision;
  }

  get hurried(): number {
    return this.#waiting.filter(({ hurried }) => hurried).length;
  }

  get #all(): Message[] {
    return [...(this.#hand === undefined ? [] : [this.#hand]), ...this.#mailbox, ...this.#line];
  }

  get #waiting(): Message[] {
    return this.#all.filter(({ waits }) => waits);
  }

  stats(): Record<string, unknown> {
    return {
      size: this.#mailbox.length,
      waitingSenders: this.#line.length,
      waitingReplies: this.#waiting.filter(({ isAsk }) => isAsk).length,
      running: this.#hand === undefined ? 0 : 1,
      closed: this.#isClosed,
    };
  }

  act(id: number, verb: string, hurried: boolean): void {
    if (["tell", "ask", "tryTell"].includes(verb))
      this.#bring({ id, isAsk: verb === "ask", hurried, waits: false }, verb);
    else if (verb === "finish") this.#end(true);
    else if (verb === "fail") this.#end(false);
    else if (verb === "abort") this.#leave("aborted", () => true);
    else if (verb === "10 ms") this.#leave("TIMEOUT", (each) => each.hurried);
    else if (verb === "clear") this.#lose("cleared");
    else if (verb === "close") this.#close();
    else if (verb === "stop") {
      this.#close();
      this.#lose("stopped");
    }
    this.#goOn();
  }

  #settle(message: Message, outcome: unknown): void {
    message.waits = false;
    this.outcomes.set(message.id, outcome);
  }

  #bring(message: Message, verb: string): void {
    const refuse = (outcome: string): unknown => this.outcomes.set(message.id, verb === "tryTell" ? false : outcome);
    if (this.#isClosed) return void refuse("CLOSED");
    if (this.#mailbox.length < this.#capacity) return this.#accept(message);
    if (this.#whenFull === "reject" || (this.#whenFull === "wait" && verb === "tryTell"))
      return void refuse("QUEUE_FULL");
    if (this.#whenFull === "wait") {
      message.waits = true;
      this.#line.push(message);
    } else if (this.#whenFull === "drop-newest") this.outcomes.set(message.id, message.isAsk ? "QUEUE_FULL" : false);
    else {
      this.#giveUp(this.#mailbox.shift() as Message, "QUEUE_FULL");
      this.#accept(message);
    }
  }

  #accept(message: Message): void {
    this.#mailbox.push(message);
    message.waits = message.isAsk;
    if (!message.isAsk) this.#settle(message, true);
  }

  #end(isSuccess: boolean): void {
    const message = this.#hand;
    if (message === undefined) return;
    this.#hand = undefined;
    this.completed += 1;
    if (message.waits) this.#settle(message, isSuccess ? message.id : "failed");
    if (isSuccess || this.#decision !== "stop") return;
    this.#close();
    this.#lose("CLOSED");
  }

  /** One after the other; a place that becomes free so goes to who is next in line, unless that hears of the abort first. */
  #leave(outcome: string, isMeant: (message: Message) => boolean): void {
    for (const message of this.#waiting.filter(isMeant)) {
      if (!message.waits) continue;
      this.#settle(message, outcome);
      if (message === this.#hand) continue;
      const isInside = this.#mailbox.includes(message);
      this.#mailbox = this.#mailbox.filter((each) => each !== message);
      this.#line = this.#line.filter((each) => each !== message);
      if (isInside) this.skipped += 1;
      if (isInside) this.#admit(outcome === "aborted");
    }
  }

  #admit(isAbort = false): void {
    while (this.#line.length > 0 && this.#mailbox.length < this.#capacity) {
      const next = this.#line.shift() as Message;
      if (isAbort && !next.isAsk) this.#settle(next, "aborted");
      else this.#accept(next);
    }
  }

  #lose(reason: string): void {
    for (const message of this.#mailbox.splice(0)) this.#giveUp(message, reason);
  }

  #giveUp(message: Message, reason: string): void {
    if (message.isAsk) this.#settle(message, reason);
    else this.undelivered.push(message.id);
  }

  #close(): void {
    this.#isClosed = true;
    for (const message of this.#line.splice(0)) this.#settle(message, "CLOSED");
  }

  #goOn(): void {
    this.#admit();
    if (this.#hand !== undefined || this.#mailbox.length === 0) return;
    this.#hand = this.#mailbox.shift();
    this.handled.push((this.#hand as Message).id);
    this.#goOn();
  }
}

it("handles one message at a time and each once, in whatever order what its handlers wait for comes", async () => {
  await explore(async ({ step }) => {
    const log: string[] = [];
    let inside = 0;
    const actor = new Actor<string, string>(2, () => async (message) => {
      inside += 1;
      expect(inside).toBe(1);
      await step(`first half of ${message}`, () => {});
      await step(`second half of ${message}`, () => {});
      inside -= 1;
      log.push(message);
      if (message === "b") throw new Error("b");
      return message;
    });
    const sent = await Promise.allSettled([
      actor.ask("a"),
      actor.ask("b"),
      step("c is sent", () => {}).then(() => actor.ask("c")),
      step("d is sent", () => {}).then(() => actor.tell("d")),
    ]);
    await actor.drain();
    expect(sent.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(log.toSorted()).toEqual(["a", "b", "c", "d"]);
    expect(log.indexOf("a")).toBeLessThan(log.indexOf("b"));
  });
});
