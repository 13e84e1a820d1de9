import { expect, it } from "vitest";
import { Queue } from "../flow/queue.ts";
import { notice } from "../internal/probe.ts";
import { TaskGroup } from "../scope/task-group.ts";
import { Gate } from "../sync/gate.ts";
import { RwLock } from "../sync/rw-lock.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { type ObservedEvent, onEvent } from "./events.ts";

/** Events of what `play` does, as `name kind`, with the detail where there is one. */
async function told(play: () => unknown): Promise<unknown[]> {
  const log: unknown[] = [];
  const stop = onEvent(({ name, subject, detail }) =>
    log.push(detail === undefined ? `${name} ${subject.kind}` : [`${name} ${subject.kind}`, detail]),
  );
  await play();
  await turn();
  stop();
  return log;
}

it("tells who is turned away, gives up and closes, with the error that the caller got", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(1, { maxWaiting: 1, clock });
  const log = await told(async () => {
    await sem.acquire();
    const call = new AbortController();
    const waits = [sem.acquire({ signal: call.signal }), sem.acquire().catch((error: unknown) => error)];
    call.abort();
    await Promise.allSettled([
      ...waits,
      sem.acquire({ timeoutMs: 5 }),
      clock.advance(5),
      sem.acquire({ timeoutMs: 0 }),
    ]);
    sem.close();
    await sem.acquire().catch(() => {});
  });
  expect(log).toEqual([
    ["rejected semaphore", expect.objectContaining({ code: "QUEUE_FULL" })],
    "aborted semaphore",
    "timed-out semaphore",
    "timed-out semaphore",
    "closed semaphore",
    ["rejected semaphore", expect.objectContaining({ code: "CLOSED" })],
  ]);
});

it("F01.1: tells what a queue drops and turns away, and that it is closed", async () => {
  const log = await told(async () => {
    const [newest, oldest] = [new Queue(1, { whenFull: "drop-newest" }), new Queue(1, { whenFull: "drop-oldest" })];
    for (const queue of [newest, oldest]) for (const item of ["a", "b"]) await queue.put(item);
    const refusing = new Queue(1, { whenFull: "reject" });
    await refusing.put("a");
    await refusing.put("b").catch(() => {});
    newest.close();
  });
  expect(log).toEqual([
    ["dropped queue", "b"],
    ["dropped queue", "a"],
    ["rejected queue", expect.objectContaining({ code: "QUEUE_FULL" })],
    ["closed queue", expect.objectContaining({ code: "CLOSED" })],
  ]);
});

it("tells of locks and gates, too", async () => {
  const log = await told(async () => {
    const lock = new RwLock({ maxWaiting: 0 });
    await lock.write();
    await lock.read().catch(() => {});
    lock.close();
    await new Gate({ maxWaiting: 0 }).wait().catch(() => {});
  });
  expect(log).toEqual([
    ["rejected rw-lock", expect.objectContaining({ code: "QUEUE_FULL" })],
    "closed rw-lock",
    ["rejected gate", expect.objectContaining({ code: "QUEUE_FULL" })],
  ]);
});

it("tells of children of a group that did not come to start", async () => {
  const log = await told(async () => {
    const group = new TaskGroup({ concurrency: 1 });
    const call = new AbortController();
    const { promise, resolve: end } = Promise.withResolvers<void>();
    const first = group.run(() => promise);
    const waits = [group.run(() => {}, { signal: call.signal }), group.run(() => {}, { timeoutMs: 0 })];
    call.abort();
    await Promise.allSettled(waits);
    end();
    await first;
  });
  expect(log).toEqual(["timed-out task-group", "aborted task-group"]);
});

it("names what has a name", async () => {
  const events: ObservedEvent[] = [];
  const stop = onEvent((event) => events.push(event));
  new Semaphore(1, { name: "named-event" }).close();
  await turn();
  stop();
  expect(events).toEqual([{ name: "closed", subject: { kind: "semaphore", name: "named-event" }, detail: undefined }]);
});

it("calls listeners when the code that was running has ended, so that none can act in the midst of it", async () => {
  const log: string[] = [];
  const stop = onEvent(({ name }) => log.push(name));
  const sem = new Semaphore(1);
  sem.close();
  log.push("after close");
  await turn();
  expect(log).toEqual(["after close", "closed"]);
  stop();
});

it("tells a newcomer nothing of what happened before, though others have yet to hear of it", async () => {
  const [log, late]: [string[], string[]] = [[], []];
  const stops = [onEvent(({ name }) => log.push(name))];
  const sem = new Semaphore(1);
  sem.close();
  stops.push(onEvent(({ name }) => late.push(name)));
  await sem.acquire().catch(() => {});
  await turn();
  expect([log, late]).toEqual([["closed", "rejected"], ["rejected"]]);
  sem.close();
  expect(() => onEvent(5 as never)).toThrow("listener must be a function, got number");
  for (const stop of stops) stop();
});

it("lets no listener harm another", async () => {
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  const unhandled = new Promise((resolve) => process.once("unhandledRejection", resolve));
  const log: string[] = [];
  const stops = [
    onEvent(() => {
      throw new Error("broken listener");
    }),
    onEvent(({ name }) => log.push(name)),
  ];
  new Semaphore(1).close();
  expect(await unhandled).toMatchObject({ message: "broken listener" });
  expect(log).toEqual(["closed"]);
  for (const stop of stops) stop();
  for (const listener of others) process.on("unhandledRejection", listener);
});

it("listens to nothing once all have stopped, and tells nobody what happened before", async () => {
  const log: string[] = [];
  const stops = [onEvent(({ name }) => log.push(name)), onEvent(() => {})];
  new Semaphore(1).close();
  stops[0]?.();
  await turn();
  expect([log, notice === undefined]).toEqual([[], false]);
  stops[1]?.();
  expect(notice).toBeUndefined();
});
