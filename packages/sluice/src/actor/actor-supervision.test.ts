import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ClosedError } from "../errors.ts";
import { constantBackoff, exponentialBackoff } from "../resilience/backoff.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { ActorEnd, ActorOptions, Decision, Failure, RetireReason } from "./actor-options.ts";
import { Actor } from "./actor.ts";

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): unknown => unhandled.push(error);
const others = process.listeners("unhandledRejection");

beforeEach(() => {
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", onUnhandled);
});
afterEach(() => {
  process.removeListener("unhandledRejection", onUnhandled);
  unhandled.length = 0;
  if (process.listenerCount("unhandledRejection") === 0)
    for (const each of others) process.on("unhandledRejection", each);
});

/** Replies with the sum of its messages; each that isn't positive fails. */
function adder(options: ActorOptions<number> = {}): Actor<number, number> {
  return new Actor<number, number>(
    8,
    () => {
      let sum = 0;
      return (n) => {
        if (n <= 0) throw new Error(`${n}`);
        return (sum += n);
      };
    },
    options,
  );
}

const failing: (decision: Decision) => ActorOptions<number> = (decision) => ({ onFailure: () => decision });

it("goes on with the state it has when it resumes", async () => {
  const actor = adder(failing("resume"));
  await actor.ask(5);
  await expect(actor.ask(0)).rejects.toThrow("0");
  expect(await actor.ask(1)).toBe(6);
  expect(actor.stats()).toMatchObject({ failed: 1, restarts: 0, completed: 3 });
});

it("has a new state after a restart, which is what it does unless told otherwise", async () => {
  const actor = adder();
  await actor.ask(5);
  await expect(actor.ask(0)).rejects.toThrow("0");
  expect(await actor.ask(1)).toBe(1);
  expect(actor.stats()).toMatchObject({ failed: 1, restarts: 1 });
});

it("F07.5: loses the message that failed at a restart and no other: the mailbox is kept", async () => {
  const undelivered: number[] = [];
  const failures: unknown[] = [];
  const actor = adder({
    onFailure: (error, { message }) => {
      failures.push([message, (error as Error).message]);
      return "restart";
    },
    onUndelivered: (message) => void undelivered.push(message),
  });
  const told = [actor.tell(1), actor.tell(0), actor.tell(2)];
  const [failed, asked] = [actor.ask(-1), actor.ask(3)];
  expect(await Promise.all(told)).toEqual([true, true, true]);
  await expect(failed).rejects.toThrow("-1");
  expect(await asked).toBe(3); // the state of 2 went with -1
  expect([failures, undelivered]).toEqual([
    [
      [0, "0"],
      [-1, "-1"],
    ],
    [],
  ]);
});

it("F07.5: stops for good when told so: the rest is undelivered, and asks are rejected with what it failed with as the cause", async () => {
  const undelivered: unknown[] = [];
  const actor = adder({ ...failing("stop"), onUndelivered: (message, reason) => undelivered.push([message, reason]) });
  const ends: ActorEnd[] = [];
  actor.watch((end) => ends.push(end));
  const failed = actor.ask(0);
  void actor.tell(1);
  const pending = actor.ask(2);
  await expect(failed).rejects.toThrow("0");
  await expect(pending).rejects.toMatchObject({ code: "CLOSED", cause: { message: "0" } });
  await actor.drain();
  expect(undelivered).toEqual([[1, expect.any(ClosedError)]]);
  expect(ends).toMatchObject([{ why: "failed", reason: { message: "0" } }]);
  expect(actor.stats()).toMatchObject({ closed: true, undelivered: 2 });
  await expect(actor.ask(3)).rejects.toThrow(ClosedError);
});

it("lets the failure of a message that was told surface, unless a function hears of it", async () => {
  const actor = adder({ onFailure: "resume" });
  await actor.tell(0);
  await actor.ask(-1).catch(() => {});
  await turn();
  expect(unhandled).toMatchObject([{ message: "0" }]);
  const heard = adder(failing("resume"));
  await heard.tell(0);
  await turn();
  expect(unhandled).toHaveLength(1);
});

it("escalates what the function throws that decides, or what it decides that is no decision", async () => {
  const bug = new Error("bug");
  const thrower = adder({
    onFailure: () => {
      throw bug;
    },
  });
  const fool = adder({ onFailure: () => "retry" as Decision });
  const ends: unknown[] = [];
  for (const actor of [thrower, fool]) actor.watch(({ reason }) => ends.push(reason));
  await thrower.tell(0);
  await fool.tell(0);
  await turn();
  expect(ends).toEqual([bug, expect.any(RangeError)]);
});

it("rests longer with each failure in a row, not at all after the first, and begins anew after a success", async () => {
  const clock = new VirtualClock();
  const at: number[] = [];
  const actor = adder({
    clock,
    backoff: exponentialBackoff({ baseMs: 100 }),
    onFailure: () => {
      at.push(clock.now());
      return "restart";
    },
  });
  for (const n of [0, 0, 0, 0, 1, 0]) actor.tryTell(n);
  await clock.advance(10_000);
  expect(at).toEqual([0, 0, 100, 300, 700]);
  expect(actor.stats()).toMatchObject({ completed: 6, restarts: 5, size: 0 });
});

it("tells which failure in a row it is, and draws the rest from its random source", async () => {
  const clock = new VirtualClock();
  const failures: Failure<number>[] = [];
  const actor = adder({
    clock,
    random: () => 0.5,
    onFailure: (_, failure) => {
      failures.push(failure);
      return "restart";
    },
  });
  for (const n of [0, -1, 0, 5, 0]) actor.tryTell(n);
  await clock.advance(49);
  expect(failures.map(({ inARow }) => inARow)).toEqual([1, 2]);
  await clock.advance(51);
  expect(failures.map(({ inARow, message }) => [message, inARow])).toEqual([
    [0, 1],
    [-1, 2],
    [0, 3],
  ]);
  await clock.advance(1_000);
  expect(failures.at(-1)).toEqual({ message: 0, inARow: 1 });
});

it("escalates once it has restarted too often within the window", async () => {
  const clock = new VirtualClock();
  const actor = adder({
    clock,
    maxRestarts: 2,
    restartWindowMs: 1_000,
    backoff: constantBackoff(0),
    ...failing("restart"),
  });
  const ends: ActorEnd[] = [];
  actor.watch((end) => ends.push(end));
  for (const afterMs of [0, 600, 600, 600, 100]) {
    await clock.advance(afterMs);
    await actor.ask(0).catch(() => {});
    await turn();
  }
  expect([actor.stats().restarts, ends.length]).toEqual([4, 1]);
  const never = adder({ maxRestarts: 0, ...failing("restart") });
  never.watch((end) => ends.push(end));
  await never.ask(0).catch(() => {});
  await turn();
  expect([never.stats().restarts, ends.length]).toEqual([0, 2]);
});

it("surfaces what is escalated where there is no parent and nobody watches", async () => {
  const alone = adder(failing("escalate"));
  await alone.ask(0).catch(() => {});
  await turn();
  expect(unhandled).toMatchObject([{ message: "0" }]);
  const watched = adder(failing("escalate"));
  watched.watch(() => {});
  await watched.ask(0).catch(() => {});
  await turn();
  expect([unhandled.length, watched.closed]).toEqual([1, true]);
});

it("ends its rest at once when it is closed with nothing left, or aborted", async () => {
  const clock = new VirtualClock();
  const make = (): Actor<number> => adder({ clock, backoff: constantBackoff(60_000), ...failing("restart") });
  const [closed, aborted, busy] = [make(), make(), make()];
  for (const actor of [closed, aborted, busy]) for (const n of [0, 0]) actor.tryTell(n);
  await turn();
  for (const actor of [aborted, busy]) actor.tryTell(1);
  closed.close();
  aborted.abort();
  busy.close();
  await closed.drain();
  await aborted.drain();
  expect([aborted.stats().undelivered, busy.size, clock.timers]).toEqual([1, 1, 1]);
  await clock.advance(60_000);
  await busy.drain();
  expect(busy.stats().completed).toBe(3);
});

it("awaits that a state is put away before it makes the next, and tells why", async () => {
  const log: string[] = [];
  const actor = new Actor<number, number>(
    8,
    ({ signal }) => {
      log.push("made");
      signal.addEventListener("abort", () => log.push("aborted"));
      return {
        receive: (n) => {
          if (n === 0) throw new Error("0");
          return n;
        },
        retire: async (why: RetireReason) => {
          await turn();
          log.push(why);
        },
      };
    },
    { onFailure: () => "restart" },
  );
  actor.tryTell(0);
  expect(await actor.ask(1)).toBe(1);
  actor.close();
  await actor.drain();
  expect(log).toEqual(["made", "aborted", "restart", "made", "aborted", "end"]);
});

it("goes on though a state fails to be put away, and the failure surfaces", async () => {
  const failure = new Error("disk full");
  const actor = new Actor<number, number>(
    8,
    () => ({
      receive: (n) => {
        if (n === 0) throw new Error("0");
        return n;
      },
      retire: () => Promise.reject(failure),
    }),
    { onFailure: () => "restart" },
  );
  actor.tryTell(0);
  expect(await actor.ask(1)).toBe(1);
  await turn();
  expect(unhandled).toEqual([failure]);
});

it("fails the message for which a state could not be made, and tries again for the next", async () => {
  let isUp = false;
  const setup = (): (() => string) => {
    if (!isUp) throw new Error("down");
    return () => "up";
  };
  for (const make of [setup, async () => setup()]) {
    isUp = false;
    for (const decision of ["restart", "resume"] as const) {
      const actor = new Actor<string, string>(8, make, { onFailure: () => decision });
      await expect(actor.ask("a")).rejects.toThrow("down");
      isUp = true;
      expect(await actor.ask("b")).toBe("up");
      isUp = false;
    }
  }
});

/** A parent whose child it names in its reply, each with a number that tells how often it was made. */
interface Family {
  readonly parent: Actor<string, readonly Actor<string, string>[]>;
  readonly log: string[];
}

function family(
  names: readonly string[],
  childOptions: ActorOptions<string>,
  options: ActorOptions<string> = {},
): Family {
  const log: string[] = [];
  const child = (name: string): (() => { receive: (message: string) => string; retire: () => void }) => {
    let made = 0;
    return () => {
      const id = `${name}${(made += 1)}`;
      return {
        receive: (message) => {
          if (message === "fail") throw new Error(id);
          return id;
        },
        retire: () => void log.push(`${id} gone`),
      };
    };
  };
  const parent = new Actor<string, readonly Actor<string, string>[]>(
    8,
    ({ spawn }) => {
      log.push("parent made");
      const children = names.map((name) => spawn(8, child(name), childOptions));
      return {
        receive: (message) => {
          if (message === "fail") throw new Error("parent");
          return children;
        },
        retire: () => void log.push("parent gone"),
      };
    },
    options,
  );
  return { parent, log };
}

const ids = (children: readonly Actor<string, string>[]): Promise<string[]> =>
  Promise.all(children.map((child) => child.ask("who")));

it("restarts only the child that failed, one for one", async () => {
  const { parent } = family(["a", "b", "c"], { onFailure: () => "restart" });
  const children = await parent.ask("children");
  expect(await ids(children)).toEqual(["a1", "b1", "c1"]);
  await children[1]?.ask("fail").catch(() => {});
  expect(await ids(children)).toEqual(["a1", "b2", "c1"]);
});

it.each([
  ["one-for-all", ["a2", "b2", "c2"]],
  ["rest-for-one", ["a1", "b2", "c2"]],
] as const)("restarts the others with it, %s, after the message they are at", async (strategy, then) => {
  const { parent, log } = family(["a", "b", "c"], { onFailure: () => "restart" }, { children: strategy });
  const children = await parent.ask("children");
  await ids(children);
  await children[1]?.ask("fail").catch(() => {});
  await turn();
  expect(await ids(children)).toEqual(then);
  expect(log.filter((line) => line.endsWith("gone"))).toHaveLength(strategy === "one-for-all" ? 3 : 2);
});

it("fails the parent with what a child escalates, and a restarted parent has new children", async () => {
  const failures: unknown[] = [];
  const { parent, log } = family(
    ["a", "b"],
    { onFailure: () => "escalate" },
    {
      onFailure: (error, { message }) => {
        failures.push([(error as Error).message, message]);
        return "restart";
      },
    },
  );
  const children = await parent.ask("children");
  await ids(children);
  await expect(children[0]?.ask("fail")).rejects.toThrow("a1");
  await turn();
  await parent.drain();
  expect(failures).toEqual([["a1", undefined]]);
  expect(log.toSorted()).toEqual(["a1 gone", "b1 gone", "parent gone", "parent made"]);
  expect(log.at(-1)).toBe("parent gone");
  await expect(children[1]?.ask("who")).rejects.toThrow(ClosedError);
  expect(await ids(await parent.ask("children"))).toEqual(["a1", "b1"]);
});

it("keeps a failure from the parent, and from everybody else, when a child stops", async () => {
  const { parent } = family(["a", "b"], { onFailure: () => "stop" });
  const children = await parent.ask("children");
  await ids(children);
  await expect(children[0]?.ask("fail")).rejects.toThrow("a1");
  await turn();
  expect(await children[1]?.ask("who")).toBe("b1");
  expect(parent.stats()).toMatchObject({ failed: 0, restarts: 0, children: 1 });
  expect(unhandled).toEqual([]);
});

it("passes a failure up through all who escalate", async () => {
  const grand = new Actor<string, Actor<string, Actor<string>>>(
    8,
    ({ spawn }) => {
      const parent = spawn<string, Actor<string>>(
        8,
        (context) => {
          const child = context.spawn<string>(
            8,
            () => () => {
              throw new Error("deep");
            },
            { onFailure: "escalate" },
          );
          return () => child;
        },
        { onFailure: "escalate" },
      );
      return () => parent;
    },
    { onFailure: "escalate" },
  );
  const ends: ActorEnd[] = [];
  grand.watch((end) => ends.push(end));
  const parent = await grand.ask("parent");
  const child = await parent.ask("child");
  await child.tell("fail");
  await turn();
  await grand.drain();
  expect(ends).toMatchObject([{ why: "failed", reason: { message: "deep" } }]);
  expect([parent.closed, child.closed, unhandled]).toEqual([true, true, []]);
});

it("ends its children before itself: with what they have accepted when it is closed, without when it fails", async () => {
  for (const word of ["close", "fail"] as const) {
    const gate = Promise.withResolvers<void>();
    const log: string[] = [];
    const parent = new Actor<string, Actor<string>>(
      8,
      ({ spawn }) => {
        const child = spawn<string>(8, () => async (message) => {
          await gate.promise;
          log.push(message);
        });
        return {
          receive: (message) => {
            if (message === "fail") throw new Error("parent");
            return child;
          },
          retire: () => void log.push("parent gone"),
        };
      },
      { onFailure: () => "stop" },
    );
    const child = await parent.ask("child");
    for (const message of ["a", "b"]) child.tryTell(message);
    await turn();
    if (word === "close") parent.close();
    else parent.tryTell("fail");
    await turn();
    gate.resolve();
    await parent.drain();
    expect(log).toEqual(word === "close" ? ["a", "b", "parent gone"] : ["a", "parent gone"]);
    expect(child.closed).toBe(true);
  }
});

it("surfaces what a child escalates while its parent is being put away", async () => {
  const gate = Promise.withResolvers<void>();
  const parent = new Actor<string, Actor<string>>(8, ({ spawn }) => {
    const child = spawn<string>(
      8,
      () => async () => {
        await gate.promise;
        throw new Error("last words");
      },
      { onFailure: "escalate" },
    );
    return () => child;
  });
  const child = await parent.ask("child");
  child.tryTell("a");
  await turn();
  parent.close();
  await turn();
  gate.resolve();
  await parent.drain();
  await turn();
  expect(unhandled).toMatchObject([{ message: "last words" }]);
});

it("tells an actor of the end of another as a message, with the reason", async () => {
  const seen: unknown[] = [];
  const watcher = new Actor<ActorEnd>(8, () => (end) => void seen.push([end.why, (end.reason as Error).message]));
  const watched = adder(failing("stop"));
  watched.watch((end) => void watcher.tell(end));
  await watched.tell(0);
  await watched.drain();
  await watcher.drain();
  expect(seen).toEqual([["failed", "0"]]);
});
