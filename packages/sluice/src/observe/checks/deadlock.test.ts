import { expect, it } from "vitest";
import { Limiter } from "../../flow/limiter.ts";
import { AdaptiveLimiter } from "../../resilience/adaptive-limiter.ts";
import { aimd } from "../../resilience/adaptive-limiter-aimd.ts";
import { TaskGroup, taskGroup } from "../../scope/task-group.ts";
import { acquireAll } from "../../sync/acquire-all.ts";
import { Barrier } from "../../sync/barrier.ts";
import { Condition } from "../../sync/condition.ts";
import { Mutex } from "../../sync/mutex.ts";
import type { Permit } from "../../sync/permit.ts";
import { RwLock } from "../../sync/rw-lock.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { turn } from "../../testing/turn.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import { activity, enable } from "../enable.ts";
import { type ObservedEvent, onEvent } from "../events.ts";
import type { Report } from "../report.ts";

function rings(clock: VirtualClock): Report[] {
  return doctor({ clock }).filter(({ id }) => id === "H03" || id === "H04");
}

async function take(first: Mutex, second: Mutex): Promise<Permit> {
  await first.acquire();
  await turn();
  return second.acquire();
}

/** Takes one under the other, with a turn in between, and never comes back if somebody does it the other way round. */
function nest(outer: Semaphore | Mutex, inner: Semaphore | Mutex): void {
  void outer.run(() => turn().then(() => inner.run(() => {})));
}

it("F10.2: H03 tells of two semaphores that are taken in opposite orders, where each waits", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const [a, b] = [new Semaphore(1, { name: "ring-a", clock }), new Semaphore(1, { name: "ring-b", clock })];
  nest(a, b);
  nest(b, a);
  await turn();
  await clock.advance(4_999);
  expect(rings(clock)).toEqual([]);
  await clock.advance(1);
  const [report, ...more] = rings(clock);
  expect(more).toEqual([]);
  expect(report).toMatchObject({
    id: "H03",
    failureModes: ["F07.2", "F08.1", "F09.3", "F10.2", "F11.5"],
    subject: { kind: "semaphore", name: "ring-a" },
    evidence:
      'semaphore "ring-a" is held up by one who waits for semaphore "ring-b", which is held up by one who waits for semaphore "ring-a", all for 5 s',
    facts: { waitedMs: 5_000, waits: 2, path: 'semaphore "ring-a" → semaphore "ring-b"' },
  });
  const stacks = String(report?.facts["waitsAt"]).split("\n\n");
  expect(stacks.map((stack) => stack.split("\n")[0]?.includes("deadlock.test.ts"))).toEqual([true, true]);
});

it("F10.2: finds no ring where both are taken at once", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const [a, b] = [new Semaphore(1, { clock }), new Semaphore(1, { clock })];
  const both = async (...items: readonly Semaphore[]): Promise<void> => {
    const permit = await acquireAll(items, { clock });
    await turn();
    permit.release();
  };
  const [first, second] = [both(a, b), both(b, a)];
  await turn();
  await clock.advance(10_000);
  expect(rings(clock)).toEqual([]);
  await Promise.all([first, second]);
});

it("finds a ring of three, once, and whoever stands behind it is no part of it", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const [a, b, c] = ["ring3-a", "ring3-b", "ring3-c"].map((name) => new Mutex({ name, clock })) as [
    Mutex,
    Mutex,
    Mutex,
  ];
  const behind = new Mutex({ clock });
  nest(behind, b);
  void behind.run(() => {});
  nest(a, b);
  nest(b, c);
  nest(c, a);
  await turn();
  void a.run(() => {});
  await clock.advance(5_000);
  const says =
    'mutex "ring3-c" is held up by one who waits for mutex "ring3-a", which is held up by one who waits for mutex ' +
    '"ring3-b", which is held up by one who waits for mutex "ring3-c", all for 5 s';
  expect(rings(clock)).toMatchObject([{ evidence: says, facts: { waits: 3 } }]);
});

it("tells of who waits under a mutex for the same mutex", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const mutex = new Mutex({ name: "ring-self", clock });
  void mutex.run(() => mutex.run(() => {}));
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([
    {
      id: "H03",
      evidence: 'mutex "ring-self" is waited for by those who hold it, for 5 s',
      facts: { waits: 1 },
      remedy: expect.stringContaining("take it once"),
    },
  ]);
});

it("F02.2: H04 tells of a limiter whose calls all wait for slots of their own", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const limit = new Limiter(2, { name: "ring-limiter", stallMs: Infinity, clock });
  const nested = (): Promise<unknown> => limit.run(() => turn().then(() => limit.run(() => {}, { weight: 2 })));
  void nested();
  void nested();
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([
    {
      id: "H04",
      failureModes: ["F02.2"],
      evidence: 'limiter "ring-limiter" is waited for by those who hold it, for 5 s',
    },
  ]);
});

it("F02.2: H04 tells of a group whose children all wait for children of their own to start", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const group = new TaskGroup({ concurrency: 2, clock });
  const parents = [1, 2].map(() => group.run(() => turn().then(() => group.run(() => {}))));
  await turn();
  await clock.advance(5_000);
  const evidence = "a task-group without a name is waited for by those who hold it, for 5 s";
  expect(rings(clock)).toMatchObject([{ id: "H04", failureModes: ["F02.2"], evidence }]);
  group.abort(new Error("enough"));
  await Promise.allSettled(parents);
  expect(rings(clock)).toEqual([]);
});

it("F02.2: leaves a group alone in which a child has a slot left for what it waits for", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const group = new TaskGroup({ concurrency: 2, clock });
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const parents = [group.run(() => turn().then(() => group.run(() => {}))), group.run(() => promise)];
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toEqual([]);
  end();
  await Promise.all(parents);
});

it("F02.2: H04 tells of an adaptive limiter whose call waits for a slot of its own", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const limit = new AdaptiveLimiter(aimd(), { maxConcurrency: 1, name: "ring-adaptive", clock });
  void limit.run(() => limit.run(() => {}));
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([{ id: "H04", subject: { kind: "adaptive-limiter" } }]);
});

it("F02.2: leaves a limiter alone in which a call has a slot left for what it waits for", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const limit = new Limiter(3, { stallMs: Infinity, clock });
  const { promise, resolve: end } = Promise.withResolvers<void>();
  void limit.run(() => promise);
  const nested = [1, 2].map(() => limit.run(() => turn().then(() => limit.run(() => "through"))));
  await turn();
  await clock.advance(60_000);
  expect(rings(clock)).toEqual([]);
  end();
  expect(await Promise.all(nested)).toEqual(["through", "through"]);
});

it("F09.3: H03 tells of a writer that waits for its own read lock", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const lock = new RwLock({ name: "ring-rw", clock });
  const { promise, resolve: endOther } = Promise.withResolvers<void>();
  void lock.readers.run(() => promise);
  void lock.readers.run(() => lock.writers.run(() => {}));
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([{ id: "H03", subject: { kind: "rw-lock", name: "ring-rw" } }]);
  endOther(); // one reader that is stuck is enough
  await turn();
  expect(rings(clock)).toHaveLength(1);
});

it("finds no ring where one of several holders can still go on", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(2, { name: "ring-partial", clock });
  const { promise, resolve: end } = Promise.withResolvers<void>();
  void sem.run(() => promise);
  const nested = sem.run(() => sem.run(() => "through"));
  await clock.advance(60_000);
  expect(rings(clock)).toEqual([]);
  end();
  expect(await nested).toBe("through");
});

it("finds no ring through what was taken before anybody watched", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(2, { clock });
  const permit = await sem.acquire();
  using _ = enable({ clock });
  const nested = sem.run(() => sem.run(() => "through"));
  await clock.advance(60_000);
  expect(rings(clock)).toEqual([]);
  permit.release();
  expect(await nested).toBe("through");
});

it("knows who takes by bare calls within an activity, and nobody outside of one", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const [a, b] = [new Mutex({ name: "ring-bare-a", clock }), new Mutex({ name: "ring-bare-b", clock })];
  const cross = (as: (fn: () => unknown) => unknown): void => {
    as(() => take(a, b));
    as(() => take(b, a));
  };
  cross(activity);
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([{ id: "H03", facts: { waits: 2 } }]);

  const [c, d] = [new Mutex({ clock }), new Mutex({ clock })];
  void take(c, d);
  void take(d, c);
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toHaveLength(1);
});

it("F11.5: H03 tells of two barriers at which the parties of a round wait crossed", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const [a, b] = [new Barrier(2, { name: "ring-inner", clock }), new Barrier(2, { name: "ring-outer", clock })];
  const party = async (first: Barrier, second: Barrier): Promise<void> => {
    for (const barrier of [a, b, first, second]) await barrier.wait();
  };
  void activity(() => party(a, b));
  void activity(() => party(b, a));
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([
    { id: "H03", facts: { path: 'barrier "ring-inner" → barrier "ring-outer"', waits: 2 } },
  ]);
});

it("F11.5: finds no ring at barriers to which all come in one order", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const [a, b] = [new Barrier(2, { clock }), new Barrier(2, { clock })];
  const party = async (): Promise<void> => {
    for (const barrier of [a, b, a, b]) await barrier.wait();
  };
  const first = activity(party);
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toEqual([]);
  await Promise.all([first, activity(party)]);
});

it("takes who came to a barrier once for no party of it once others have come", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const barrier = new Barrier(2, { clock });
  const mutex = new Mutex({ clock });
  const { promise: newcomer, resolve: goOn } = Promise.withResolvers<void>();
  const former = activity(async () => {
    await barrier.wait();
    await newcomer;
    await mutex.run(() => {});
  });
  void activity(() => barrier.wait());
  await turn();
  const latter = mutex.run(() => barrier.wait());
  goOn();
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toEqual([]); // the former waits for the latter, and the latter for somebody else
  await Promise.all([barrier.wait(), latter, former]);
});

it("knows the children of a group by themselves, and as those of who has the group", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const mutex = new Mutex({ name: "ring-group", clock });
  void mutex.run(() => taskGroup((group) => void group.run(() => mutex.run(() => {}))));
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([{ id: "H03", subject: { name: "ring-group" } }]);
});

it("takes who wakes a waiter of a condition not for one that waits for the mutex", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const mutex = new Mutex({ name: "ring-condition", clock });
  const changed = new Condition(mutex, { clock });
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const waiter = mutex.run(({ guard }) => changed.wait(guard));
  await turn();
  const signaller = mutex.run(() => {
    changed.signal();
    return promise;
  });
  await turn();
  await clock.advance(60_000);
  expect(rings(clock)).toEqual([]);
  end();
  await Promise.all([waiter, signaller]);
});

it("knows the guard that a condition gave back and got again", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const mutex = new Mutex({ name: "ring-renewed", clock });
  const changed = new Condition(mutex, { clock });
  void mutex.run(async ({ guard }) => {
    await changed.wait(guard);
    await mutex.run(() => {});
  });
  await turn();
  changed.signal();
  await turn();
  await clock.advance(5_000);
  expect(rings(clock)).toMatchObject([{ id: "H03", subject: { name: "ring-renewed" } }]);
});

it("tells of a ring as it is found, once, and sets no timer while nobody waits", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock, stallMs: 100 });
  const events: ObservedEvent[] = [];
  const stop = onEvent((event) => events.push(event));
  const mutex = new Mutex({ name: "ring-event", clock });
  await mutex.run(() => {});
  expect(clock.timers).toBe(0);
  const call = new AbortController();
  const inner = mutex.run(() => mutex.run(() => {}, { signal: call.signal })).catch(() => {});
  await clock.advance(99);
  expect(events).toEqual([]);
  await clock.advance(1_000);
  expect(events).toMatchObject([
    {
      name: "stalled",
      subject: { kind: "mutex", name: "ring-event" },
      detail: { id: "H03", facts: { waitedMs: 100 } },
    },
  ]);
  call.abort();
  await inner;
  await clock.advance(1_000);
  expect(clock.timers).toBe(0);
  stop();
});
