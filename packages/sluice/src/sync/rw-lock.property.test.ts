import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { ReadGuard, WriteGuard } from "./rw-lock-guard.ts";
import { RwLock } from "./rw-lock.ts";

type Guard = ReadGuard<undefined> | WriteGuard<undefined>;
type Prefer = RwLock["prefer"];

it("keeps I1 to I4 and one listener per signal under any plan of reads, writes, downgrades, aborts and timeouts", () => {
  const asks = ["read", "read", "write", "write", "hurried read", "hurried write", "run", "try"] as const;
  const ends = ["release", "release", "release", "downgrade", "abort", "10 ms", "settle"] as const;
  const prefer = fc.constantFrom<Prefer>("fair", "readers", "writers");
  const plans = fc.asyncProperty(prefer, fc.array(fc.constantFrom(...asks, ...ends), { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 1_000 });
});

/** A model beside the lock: what is held, and who waits, by their number. */
class Model {
  readonly prefer: Prefer;
  reading = 0;
  writing = false;
  line: { readonly id: number; readonly isWriter: boolean }[] = [];
  readonly granted: number[] = [];

  constructor(prefer: Prefer) {
    this.prefer = prefer;
  }

  ask(id: number, isWriter: boolean): void {
    this.line.push({ id, isWriter });
    this.admit();
  }

  leave(gone: (id: number) => boolean): void {
    this.line = this.line.filter(({ id }) => !gone(id));
    this.admit();
  }

  admit(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { id, isWriter } = next;
      this.line = this.line.filter((each) => each !== next);
      this.granted.push(id);
      if (isWriter) this.writing = true;
      else this.reading += 1;
    }
  }

  #next(): Model["line"][number] | undefined {
    const preferred = this.line.find(({ isWriter }) => this.prefer === (isWriter ? "writers" : "readers"));
    const first = preferred ?? this.line[0];
    if (first === undefined || this.writing || (first.isWriter && this.reading > 0)) return undefined;
    return first;
  }
}

async function play(prefer: Prefer, plan: readonly string[]): Promise<void> {
  const clock = new VirtualClock();
  const lock = new RwLock({ prefer, clock });
  const model = new Model(prefer);
  const held: Guard[] = [];
  const granted: number[] = [];
  const hurried = new Map<number, number>();
  const own = new Set<number>();
  const runs = new Set<number>();
  let call = new AbortController();
  for (const [id, step] of [...plan, "abort", "settle"].entries()) {
    const { signal } = call;
    const isWriter = step.endsWith("write");
    const keep = (guard: Guard): unknown => held.push(guard) && granted.push(id);
    if (step === "read" || step === "write") {
      void lock[step]({ signal }).then(keep, () => {});
      own.add(id);
      model.ask(id, isWriter);
    } else if (step.startsWith("hurried")) {
      void lock[isWriter ? "write" : "read"]({ timeoutMs: 10 }).then(keep, () => {});
      hurried.set(id, clock.now() + 10);
      model.ask(id, isWriter);
    } else if (step === "run") {
      void lock.readers.run(() => new Promise<void>((release) => void held.push(runGuard(release))));
      runs.add(id); // may start before one that was granted in the same turn resumes
      model.ask(id, false);
    } else if (step === "try") {
      const guard = lock.tryWrite();
      expect(guard !== undefined).toBe(!model.writing && model.reading === 0);
      if (guard === undefined) continue;
      keep(guard);
      model.ask(id, true);
    } else if (step === "abort") {
      call.abort();
      call = new AbortController();
      model.leave((each) => own.has(each));
    } else if (step === "10 ms") {
      await clock.advance(10);
      for (const [hasty, until] of hurried) if (until <= clock.now()) model.leave((each) => each === hasty); // one by one
    } else if (step === "release") {
      await turn(); // those who were granted have their guards
      const guard = held.shift();
      if (guard === undefined) continue;
      guard.release();
      guard.release();
      if (model.writing) model.writing = false;
      else model.reading -= 1;
      model.admit();
      await turn(); // the end of a `run`
    } else if (step === "downgrade") {
      await turn();
      const [guard] = held;
      if (guard === undefined || !("downgrade" in guard)) continue;
      held[0] = guard.downgrade();
      model.writing = false;
      model.reading = 1;
      model.admit();
    } else await turn();
    expect([lock.reading, lock.writing, lock.waiting]).toEqual([model.reading, model.writing, model.line.length]);
    expect(lock.reading > 0 && lock.writing).toBe(false); // I1
    expect(lock.waiting === 0 || lock.reading > 0 || lock.writing).toBe(true); // I2
    const waiting = model.line.filter((each) => own.has(each.id));
    expect(getEventListeners(call.signal, "abort").length).toBe(waiting.length > 0 ? 1 : 0);
  }
  expect(granted).toEqual(model.granted.filter((id) => !runs.has(id))); // I3
  expect(lock.stats().waitingWriters).toBe(model.line.filter(({ isWriter }) => isWriter).length);
}

/** As much of a guard as the plan needs, for a section that `run` holds. */
function runGuard(release: () => void): Guard {
  return { release, isHeld: true, value: undefined, [Symbol.dispose]: release };
}
