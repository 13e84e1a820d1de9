import { expect, it } from "vitest";
import { sleep } from "../../clock/sleep.ts";
import { Limiter } from "../../flow/limiter.ts";
import { pipeline } from "../../flow/pipeline.ts";
import { Queue } from "../../flow/queue.ts";
import { Mutex } from "../../sync/mutex.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor, type DoctorOptions } from "../doctor.ts";
import type { Report } from "../report.ts";

/** Reports about what has this name, after a look now. */
function look(name: string, options: DoctorOptions): Report[] {
  return doctor(options).filter(({ subject }) => subject.name === name);
}

it("F01.2: H02 tells of producers that are held back while nobody takes", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { name: "nobody-takes", clock });
  queue.offer(1);
  void queue.put(2);
  expect(look("nobody-takes", { clock })).toEqual([]);
  await clock.advance(5_000);
  expect(look("nobody-takes", { clock })).toMatchObject([
    {
      id: "H02",
      failureModes: ["F01.2", "F10.1"],
      evidence: 'queue "nobody-takes" holds 1 producer back, and nobody has taken anything for 5 s',
      facts: { waitingProducers: 1, size: 1, idleMs: 5_000 },
    },
  ]);
  queue.poll();
  expect(look("nobody-takes", { clock })).toEqual([]);
});

it("leaves a queue alone whose consumer is slow, as long as it takes", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { name: "slow-consumer", clock });
  queue.offer(0);
  for (let item = 1; item <= 10; item += 1) void queue.put(item);
  for (let taken = 0; taken < 10; taken += 1) {
    await clock.advance(4_000);
    expect(look("slow-consumer", { clock, maxWaitMs: Infinity })).toEqual([]);
    queue.poll();
  }
});

it("F01.5: H05 tells of a queue that is outrun though it is nearly empty", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1_000, { name: "outrun", clock });
  const found: Report[] = [];
  for (let second = 0; second < 12; second += 1) {
    for (let item = 0; item < 5; item += 1) queue.offer(item);
    await clock.advance(1_000);
    queue.pollBatch(4);
    found.push(...look("outrun", { clock }));
  }
  expect(found[0]).toMatchObject({
    id: "H05",
    failureModes: ["F01.5"],
    evidence: 'queue "outrun" has only 9 of 1000 in line, but the oldest went from 1 s to 2 s',
    facts: { depth: 9, capacity: 1_000, ageMs: 2_000, ageBeforeMs: 1_000 },
  });
});

it("says nothing of age where the depth says it already, or where all is young", async () => {
  const clock = new VirtualClock();
  const [full, young] = [20, 1_000].map((room) => new Queue<number>(room, { name: `room ${room}`, clock }));
  for (let second = 0; second < 10; second += 1) {
    for (const queue of [full, young]) queue?.offer(second);
    full?.offer(second);
    await clock.advance(second < 5 ? 1_000 : 100);
    if (second === 5) young?.pollBatch(5);
    expect(look("room 1000", { clock, maxWaitMs: 10_000 })).toEqual([]);
    const depth = full?.size ?? 0;
    if (depth > 10) expect(look("room 20", { clock }).filter(({ id }) => id === "H05")).toEqual([]);
  }
});

it("leaves a queue alone whose items are as old now as before", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1_000, { name: "steady", clock });
  queue.offer(0);
  queue.offer(0);
  await clock.advance(2_000);
  for (let second = 0; second < 10; second += 1) {
    queue.offer(second);
    expect(look("steady", { clock })).toEqual([]);
    await clock.advance(1_000);
    queue.poll();
  }
});

it("F02.1: H07 names the limit at which work waits, the worst first", async () => {
  const clock = new VirtualClock();
  const make = (name: string): Semaphore => new Semaphore(2, { name, dependency: `${name}-api`, clock });
  const [slow, slower, free] = [make("slow"), make("slower"), make("free")];
  for (const sem of [slower, slow, free]) await sem.acquire({ weight: 2 });
  void slower.acquire();
  await clock.advance(600);
  void slow.acquire();
  await clock.advance(999);
  void free.acquire();
  expect(look("slow", { clock })).toEqual([]);
  await clock.advance(1);
  const reports = doctor({ clock }).filter(({ id }) => id === "H07");
  expect(reports).toMatchObject([
    { subject: { name: "slower" }, facts: { rank: 1, limit: 2, waiting: 1, ageMs: 1_600, dependency: "slower-api" } },
    {
      evidence: 'semaphore "slow" has 2 of 2 taken before slow-api and 1 waiting, the oldest for 1 s',
      facts: { rank: 2 },
    },
  ]);
});

it("A08: H07 tells of a mutex that everybody waits for", async () => {
  const clock = new VirtualClock();
  const mutex = new Mutex({ name: "global", clock });
  await mutex.acquire();
  void mutex.acquire();
  await clock.advance(1_000);
  expect(look("global", { clock })).toMatchObject([{ id: "H07", facts: { limit: 1 } }]);
});

it("F06.1: H07 names the stage of a pipeline that holds up the others, and none that is held up", async () => {
  const clock = new VirtualClock();
  const line = pipeline(
    Array.from({ length: 100 }, (_, item) => item),
    { name: "stages", clock },
  )
    .stage("fetch", (item) => item, { buffer: 4 })
    .stage("render", (item) => sleep(1_000, { clock }).then(() => item), { buffer: 4 })
    .stage("store", (item) => item, { buffer: 4 });
  const done = line.forEach(() => {});
  await clock.advance(10_000);
  const found = doctor({ clock }).filter(({ subject }) => subject.name?.startsWith("stages/"));
  expect(found).toMatchObject([{ id: "H07", subject: { kind: "stage", name: "stages/render" }, facts: { limit: 1 } }]);
  line.close();
  await clock.advance(100_000);
  await done;
});

it("F10.3: H12 tells of a line without bound that grows with each look", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(1, { name: "endless", clock });
  await sem.acquire();
  const found: (readonly string[])[] = [];
  for (let times = 0; times < 5; times += 1) {
    for (let waiters = 0; waiters < 40; waiters += 1) void sem.acquire();
    found.push(look("endless", { clock, maxLine: 100, maxWaitMs: Infinity }).map(({ evidence }) => evidence));
    await clock.advance(1_000);
  }
  expect(found).toEqual([
    [],
    [],
    [],
    ['semaphore "endless" has a line without bound that grew from 40 to 160 in 3 s'],
    ['semaphore "endless" has a line without bound that grew from 40 to 200 in 4 s'],
  ]);
});

it("leaves a line alone that grows within its bound", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { name: "bounded", capacity: 1_000, clock });
  void limit.run(() => new Promise<never>(() => {}));
  for (let times = 0; times < 5; times += 1) {
    for (let calls = 0; calls < 40; calls += 1) limit.run(() => {}).catch(() => {});
    expect(look("bounded", { clock, maxLine: 100, maxWaitMs: Infinity })).toEqual([]);
    await clock.advance(1_000);
  }
});

it("leaves a line alone that is long and grows no longer, and one that is short", async () => {
  const clock = new VirtualClock();
  const [long, short] = ["long", "short"].map((name) => new Semaphore(1, { name, clock })) as [Semaphore, Semaphore];
  for (const sem of [long, short]) await sem.acquire();
  for (let waiters = 0; waiters < 200; waiters += 1) void long.acquire();
  for (let times = 0; times < 10; times += 1) {
    void short.acquire();
    for (const name of ["long", "short"]) {
      expect(look(name, { clock, maxLine: 100, maxWaitMs: Infinity })).toEqual([]);
    }
    await clock.advance(1_000);
  }
});

it("takes two looks at one instant for one", () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { name: "instant", clock });
  for (let times = 0; times < 5; times += 1) void queue.put(times);
  for (let times = 0; times < 5; times += 1) expect(look("instant", { clock, stallMs: 1, maxWaitMs: 0 })).toEqual([]);
});

it("keeps what it saw by one clock apart from another", async () => {
  const [clock, other] = [new VirtualClock(), new VirtualClock()];
  const queue = new Queue<number>(1, { name: "clocks", clock });
  queue.offer(1);
  void queue.put(2);
  look("clocks", { clock: other });
  await other.advance(60_000);
  expect(look("clocks", { clock })).toEqual([]);
});
