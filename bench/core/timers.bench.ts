// A million timers pending, their delays spread over a minute, as those of requests are. Against `setTimeout`, which
// keeps a list for each delay, and the floor: a wheel that grows by doubling and knows neither order nor stale handles.
import { TimerQueue, type TimerTask, wheelClock } from "sluice";
import { compare, weigh } from "../harness.ts";

const MANY = 1_000_000;
const nothing = (): void => {};
const task: TimerTask = { onTimer: nothing };
const spread = (id: number): number => 60_000 + ((Math.imul(id, 2_654_435_761) >>> 0) % 60_000);

class Floor {
  readonly #heads = new Int32Array(6 * 64).fill(-1);
  readonly #tasks: (TimerTask | undefined)[] = [];
  #next = new Int32Array(1_024);
  #previous = new Int32Array(1_024);
  #bucket = new Int16Array(1_024);
  #dueAt = new Uint32Array(1_024);
  #free = -1;
  #count = 0;
  #now = 0;

  insert(delayMs: number, own: TimerTask): number {
    let slot = this.#free;
    if (slot === -1) slot = this.#count++;
    else this.#free = this.#next[slot] ?? -1;
    if (slot === this.#dueAt.length) this.#grow();
    this.#dueAt[slot] = this.#now + delayMs;
    this.#tasks[slot] = own;
    this.#link(slot);
    return slot;
  }

  cancel(slot: number): void {
    const [before = -1, after = -1] = [this.#previous[slot], this.#next[slot]];
    if (before === -1) this.#heads[this.#bucket[slot] ?? 0] = after;
    else this.#next[before] = after;
    if (after !== -1) this.#previous[after] = before;
    this.#tasks[slot] = undefined;
    this.#next[slot] = this.#free;
    this.#free = slot;
  }

  advance(now: number): void {
    while (this.#now < now) {
      this.#now += 1;
      for (let level = 1; level < 6 && (this.#now & (2 ** (6 * level) - 1)) === 0; level += 1) {
        const bucket = level * 64 + ((this.#now >>> (6 * level)) & 63);
        let slot = this.#heads[bucket] ?? -1;
        this.#heads[bucket] = -1;
        for (let after = -1; slot !== -1; slot = after) {
          after = this.#next[slot] ?? -1;
          this.#link(slot);
        }
      }
      for (let slot = this.#heads[this.#now & 63] ?? -1; slot !== -1; slot = this.#heads[this.#now & 63] ?? -1) {
        const due = this.#tasks[slot];
        this.cancel(slot);
        due?.onTimer();
      }
    }
  }

  #link(slot: number): void {
    const dueAt = this.#dueAt[slot] ?? 0;
    let level = 0;
    for (let rest = dueAt - this.#now; rest >= 64 && level < 5; rest >>>= 6) level += 1;
    const bucket = level * 64 + ((dueAt >>> (6 * level)) & 63);
    const head = this.#heads[bucket] ?? -1;
    this.#next[slot] = head;
    this.#previous[slot] = -1;
    if (head !== -1) this.#previous[head] = slot;
    this.#heads[bucket] = slot;
    this.#bucket[slot] = bucket;
  }

  #grow(): void {
    const length = 2 * this.#dueAt.length;
    const [next, previous, bucket, dueAt] = [this.#next, this.#previous, this.#bucket, this.#dueAt];
    (this.#next = new Int32Array(length)).set(next);
    (this.#previous = new Int32Array(length)).set(previous);
    (this.#bucket = new Int16Array(length)).set(bucket);
    (this.#dueAt = new Uint32Array(length)).set(dueAt);
  }
}

type Handle = ReturnType<typeof setTimeout>;
let left: readonly Handle[] = [];

/** A round of the runtime's own timers must not burden the next. */
function clearLeft(): void {
  for (const handle of left) clearTimeout(handle);
  left = [];
}

for (const [suffix, delayOf] of [
  ["", spread],
  ["-one-delay", () => 60_000],
] as const) {
  await compare(`timers-insert${suffix}`, MANY, {
    sluice: (ops) => () => {
      const queue = new TimerQueue();
      for (let id = 0; id < ops; id += 1) queue.insert(delayOf(id), task);
    },
    setTimeout(ops) {
      clearLeft();
      const handles: Handle[] = [];
      left = handles;
      return () => {
        for (let id = 0; id < ops; id += 1) handles.push(setTimeout(nothing, delayOf(id)));
      };
    },
    floor: (ops) => () => {
      const wheel = new Floor();
      for (let id = 0; id < ops; id += 1) wheel.insert(delayOf(id), task);
    },
  });

  await compare(`timers-cancel${suffix}`, MANY, {
    sluice(ops) {
      const queue = new TimerQueue();
      const handles = Array.from({ length: ops }, (_, id) => queue.insert(delayOf(id), task));
      return () => {
        for (const handle of handles) queue.cancel(handle);
      };
    },
    setTimeout(ops) {
      clearLeft();
      const handles = Array.from({ length: ops }, (_, id) => setTimeout(nothing, delayOf(id)));
      return () => {
        for (const handle of handles) clearTimeout(handle);
      };
    },
    floor(ops) {
      const wheel = new Floor();
      const handles = Array.from({ length: ops }, (_, id) => wheel.insert(delayOf(id), task));
      return () => {
        for (const handle of handles) wheel.cancel(handle);
      };
    },
  });
}
clearLeft();

const OTHERS = 1_000;

await compare("timers-churn", MANY, {
  sluice(ops) {
    const queue = new TimerQueue();
    for (let id = 0; id < OTHERS; id += 1) queue.insert(spread(id), task);
    for (let id = 0; id < ops; id += 1) queue.cancel(queue.insert(spread(id), task));
  },
  setTimeout(ops) {
    const others = Array.from({ length: OTHERS }, (_, id) => setTimeout(nothing, spread(id)));
    for (let id = 0; id < ops; id += 1) clearTimeout(setTimeout(nothing, spread(id)));
    for (const other of others) clearTimeout(other);
  },
  floor(ops) {
    const wheel = new Floor();
    for (let id = 0; id < OTHERS; id += 1) wheel.insert(spread(id), task);
    for (let id = 0; id < ops; id += 1) wheel.cancel(wheel.insert(spread(id), task));
  },
});

// The whole clock: with the object that is handed out, and the native timer that is armed now and then.
for (const [bench, others] of [
  ["clock-timer", OTHERS],
  ["clock-timer-alone", 0],
] as const) {
  await compare(bench, 300_000, {
    sluice(ops) {
      const kept = Array.from({ length: others }, (_, id) => wheelClock.setTimer(spread(id), task));
      for (let id = 0; id < ops; id += 1) wheelClock.setTimer(spread(id), task).cancel();
      for (const timer of kept) timer.cancel();
    },
    setTimeout(ops) {
      const kept = Array.from({ length: others }, (_, id) => setTimeout(nothing, spread(id)));
      for (let id = 0; id < ops; id += 1) clearTimeout(setTimeout(nothing, spread(id)));
      for (const timer of kept) clearTimeout(timer);
    },
  });
}

/** All within 100 ms, which have passed when they are to fire. */
await compare("timers-fire", 200_000, {
  sluice(ops) {
    const queue = new TimerQueue();
    for (let id = 0; id < ops; id += 1) queue.insert(1 + (id % 100), task);
    return () => {
      for (let due = queue.popDue(100); due !== undefined; due = queue.popDue(100)) due.onTimer();
    };
  },
  setTimeout(ops) {
    const { promise, resolve } = Promise.withResolvers<void>();
    let pending = ops;
    const onTimer = (): void => {
      pending -= 1;
      if (pending === 0) resolve();
    };
    const until = performance.now() + 110;
    for (let id = 0; id < ops; id += 1) setTimeout(onTimer, 1 + (id % 100));
    while (performance.now() < until) nothing();
    return () => promise;
  },
  floor(ops) {
    const wheel = new Floor();
    for (let id = 0; id < ops; id += 1) wheel.insert(1 + (id % 100), task);
    return () => wheel.advance(100);
  },
});

await weigh("timers-memory", MANY, {
  sluice(count) {
    const queue = new TimerQueue();
    for (let id = 0; id < count; id += 1) queue.insert(spread(id), task);
    return queue;
  },
  floor(count) {
    const wheel = new Floor();
    for (let id = 0; id < count; id += 1) wheel.insert(spread(id), task);
    return wheel;
  },
});

// Fewer, since those of the runtime stay until the end, and heavy ones would slow everything down.
await weigh("timers-memory", 100_000, {
  sluice(count) {
    const queue = new TimerQueue();
    for (let id = 0; id < count; id += 1) queue.insert(spread(id), task);
    return queue;
  },
  setTimeout(count) {
    for (let id = 0; id < count; id += 1) setTimeout(nothing, spread(id)).unref();
  },
});
