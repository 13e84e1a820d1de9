import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { TimeoutError, WaitCycleError } from "../errors.ts";
import { type ObservedEvent, onEvent } from "../observe/events.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { ActorOptions } from "./actor-options.ts";
import { Actor } from "./actor.ts";

type Word = Actor<string, string>;

/** Actors by name, each of which asks the next one of its list, and replies with that one's reply and its own name. */
function askers(
  plan: Readonly<Record<string, readonly string[]>>,
  options: ActorOptions<string> = {},
): Record<string, Word> {
  const actors: Record<string, Word> = {};
  for (const [name, others] of Object.entries(plan)) {
    let calls = 0;
    const next = (): Word | undefined => actors[others[calls++] ?? ""];
    actors[name] = new Actor<string, string>(
      8,
      () => async (message) => {
        await turn();
        const reply = await next()?.ask(message);
        return `${reply ?? message} ${name}`;
      },
      { ...options, name, onFailure: () => "resume" },
    );
  }
  return actors;
}

const pathOf = (error: unknown): unknown => (error as WaitCycleError).path;

it("F07.2: refuses an ask that would close a ring, with the path, and the others go on", async () => {
  const events: ObservedEvent[] = [];
  const stop = onEvent((event) => void events.push(event));
  const { a, b } = askers({ a: ["b"], b: ["a"] });
  const error: unknown = await a?.ask("go").catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WaitCycleError);
  expect(pathOf(error)).toEqual(["b", "a", "b"]);
  expect(a?.stats()).toMatchObject({ cycles: 1, rejected: 1 });
  expect([await a?.ask("again"), await b?.ask("again")]).toEqual(["again a", "again b"]);
  stop();
  expect(events).toMatchObject([{ name: "rejected", detail: error, subject: { name: "a" } }]);
});

it("F08.1: refuses the ask that closes a ring of three", async () => {
  const { a } = askers({ a: ["b"], b: ["c"], c: ["a"] });
  expect(pathOf(await a?.ask("go").catch((error: unknown) => error))).toEqual(["c", "a", "b", "c"]);
});

it("finds a ring by the second of two asks that one turn waits for at once", async () => {
  const gate = Promise.withResolvers<string>();
  const slow = new Actor<string, string>(8, () => () => gate.promise, { name: "slow" });
  const a: Word = new Actor<string, string>(
    8,
    () => async (message) => {
      await turn();
      const replies = await Promise.allSettled([slow.ask(message), b.ask(message)]);
      return replies.map(({ status }) => status).join(" ");
    },
    { name: "a" },
  );
  const b: Word = new Actor<string, string>(
    8,
    () => async (message) => {
      await turn();
      return await a.ask(message);
    },
    { name: "b", onFailure: () => "resume" },
  );
  const outcome = a.ask("go");
  await b.ask("from outside").catch(() => {});
  gate.resolve("done");
  expect(await outcome).toBe("fulfilled rejected");
});

it("refuses a handler that asks itself", async () => {
  const { a } = askers({ a: ["a"] });
  expect(pathOf(await a?.ask("go").catch((error: unknown) => error))).toEqual(["a", "a"]);
});

it("finds a ring though the actor has handled a thousand messages without an ask", async () => {
  const { a, b } = askers({ a: [...Array.from({ length: 1_004 }, () => ""), "b"], b: ["a"] });
  for (let sent = 0; sent < 1_004; sent += 1) await a?.ask("go");
  const found: unknown = await Promise.race([a?.ask("go").catch(pathOf), ticks(20)]);
  expect(found).toEqual(["b", "a", "b"]);
  expect(b?.stats().completed).toBe(1);
});

async function ticks(count: number): Promise<string> {
  for (let tick = 0; tick < count; tick += 1) await turn();
  return "hangs";
}

it("F07.2: two that ask each other without being found have a deadline to end it", async () => {
  const clock = new VirtualClock();
  const { a } = askers({ a: ["b"], b: ["a"] }, { findCycles: false, clock });
  const asked = a?.ask("go", { timeoutMs: 1_000 });
  const rejected = expect(asked).rejects.toThrow(TimeoutError);
  await ticks(20);
  await clock.advance(1_000);
  await rejected;
});

it("lets actors ask the same one, one after the other, in a diamond", async () => {
  const { a } = askers({ a: ["b", "c"], b: ["d"], c: ["d"], d: [] });
  expect(await a?.ask("go")).toBe("go d b a");
  expect(await a?.ask("go")).toBe("go d c a");
});

it("finds rings through any of several asks that a handler awaits at once", async () => {
  const [x, b]: [Word, Word] = [
    new Actor<string, string>(8, () => () => "x", { name: "x" }),
    new Actor<string, string>(8, () => async () => a.ask("back"), { name: "b", onFailure: () => "resume" }),
  ];
  const a: Word = new Actor<string, string>(
    8,
    () => () => Promise.allSettled([x.ask("x"), b.ask("b")]).then(([, { status }]) => status),
    { name: "a" },
  );
  expect(await a.ask("go")).toBe("rejected");
});

it("does not take what a handler started and left behind for a part of the next", async () => {
  const replies: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  const a: Word = new Actor<string, string>(8, () => async (message) => {
    if (message === "start") void gate.promise.then(() => a.ask("late")).then((reply) => replies.push(reply));
    if (message === "wait") await turn();
    return message;
  });
  await a.ask("start");
  const waiting = a.ask("wait");
  gate.resolve();
  await waiting;
  await ticks(2);
  expect(replies).toEqual(["late"]);
});

it("does not count an ask that has its answer, or was given up", async () => {
  const b: Word = new Actor<string, string>(8, () => (message) => (message === "go" ? a.ask("from b") : message), {
    name: "b",
  });
  const c: Word = new Actor<string, string>(
    8,
    () =>
      (message, { signal }) =>
        message === "go"
          ? Promise.all([a.ask("from c"), b.ask("from c")]).then(String)
          : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    { name: "c" },
  );
  const gate = Promise.withResolvers<void>();
  const a: Word = new Actor<string, string>(
    8,
    () => async (message) => {
      if (message !== "go") return message;
      const call = new AbortController();
      const asked = c.ask("hang", { signal: call.signal });
      await turn();
      call.abort();
      await asked.catch(() => {});
      await b.ask("quick");
      for (const other of [b, c]) other.tryTell("go");
      await gate.promise;
      return "done";
    },
    { name: "a" },
  );
  const asked = a.ask("go");
  await ticks(5);
  expect([a.stats().cycles, a.size, b.stats().cycles]).toEqual([0, 2, 0]); // both wait for a, which waits for neither
  gate.resolve();
  expect(await asked).toBe("done");
  await c.drain();
  expect(c.stats()).toMatchObject({ completed: 2, failed: 0 });
});

it("refuses a handler that would wait for room in its own mailbox, or in a ring of full ones", async () => {
  const self: Actor<string, string> = new Actor<string, string>(
    1,
    () => async (message) => {
      if (message === "go") await self.tell("first");
      return message === "go" ? self.tell("second").then(String) : message;
    },
    { name: "self" },
  );
  expect(pathOf(await self.ask("go").catch((error: unknown) => error))).toEqual(["self", "self"]);
  const ring: Record<string, Word> = {};
  const make = (name: string, other: string): void => {
    ring[name] = new Actor<string, string>(
      1,
      () => async (message) => {
        if (message !== "go") return message;
        for (let sent = 0; sent < 3; sent += 1) await ring[other]?.tell("flood");
        return "through";
      },
      { name, onFailure: () => "resume" },
    );
  };
  make("a", "b");
  make("b", "a");
  const outcomes = await Promise.allSettled([ring["a"]?.ask("go"), ring["b"]?.ask("go")]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
});

it("does not mistake a child that looks for no rings for the handler that made it", async () => {
  const replies: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  const parent: Word = new Actor<string, string>(8, ({ spawn }) => async (message) => {
    if (message !== "go") return message;
    const child = spawn<string>(
      8,
      () => async () => {
        replies.push(await parent.ask("from child").catch(() => "refused"));
      },
      { findCycles: false },
    );
    child.tryTell("go");
    await gate.promise;
    return "done";
  });
  const asked = parent.ask("go");
  await ticks(2);
  gate.resolve();
  await asked;
  await ticks(2);
  expect(replies).toEqual(["from child"]);
});

it("F07.4: tells how deep the chains of asks are in which it was asked", async () => {
  const { a, c } = askers({ a: ["b"], b: ["c"], c: [] });
  await c?.ask("direct");
  expect(c?.stats().deepestAsk).toBe(1);
  await a?.ask("go");
  expect(c?.stats().deepestAsk).toBe(3);
});
