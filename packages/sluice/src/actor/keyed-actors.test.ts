import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError, type WaitCycleError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { KeyedActors, type KeyedActorsOptions } from "./keyed-actors.ts";

interface Bank {
  readonly accounts: KeyedActors<string, number, number>;
  /** What was saved of each. */
  readonly saved: Map<string, number>;
  readonly log: string[];
}

/** Replies with the balance, which is kept while the account is away. 0 fails; `Infinity` waits for `gate`. */
function bank(options: KeyedActorsOptions<number> = {}, gate: Promise<void> = Promise.resolve()): Bank {
  const saved = new Map<string, number>();
  const log: string[] = [];
  const accounts = new KeyedActors<string, number, number>(
    4,
    async (key) => {
      await turn();
      log.push(`${key} loaded`);
      let balance = saved.get(key) ?? 0;
      return {
        receive: async (n) => {
          if (n === 0) throw new Error(key);
          if (n === Infinity) await gate;
          else balance += n;
          return balance;
        },
        retire: async () => {
          await turn();
          saved.set(key, balance);
          log.push(`${key} saved`);
        },
      };
    },
    { onFailure: () => "resume", ...options },
  );
  return { accounts, saved, log };
}

const drain: AbortSubject = {
  name: "KeyedActors.drain",
  open(clock) {
    const gate = Promise.withResolvers<void>();
    const actors = new KeyedActors<string, number>(4, () => () => gate.promise, { clock, idleMs: Infinity });
    actors.tryTell("a", 1);
    return {
      call: (options) => actors.drain(options),
      satisfy: () => {
        gate.resolve();
        return actors.drain();
      },
      state: () => ({ actors: actors.stats().actors }),
    };
  },
};

for (const { title, run } of abortCases(drain)) it(title, run);

it("has an actor for each key, made by the first message for it", async () => {
  const { accounts, log } = bank();
  expect([accounts.size, accounts.has("ann")]).toEqual([0, false]);
  await accounts.tell("ann", 1);
  expect(accounts.tryTell("bob", 5)).toBe(true);
  expect([await accounts.ask("ann", 2), await accounts.ask("bob", 1), await accounts.ask("cem", 9)]).toEqual([3, 6, 9]);
  expect([log.toSorted(), accounts.size, accounts.has("ann")]).toEqual([
    ["ann loaded", "bob loaded", "cem loaded"],
    3,
    true,
  ]);
});

it("puts an actor away when it has been idle, and makes it anew for the next message, with nothing lost", async () => {
  const clock = new VirtualClock();
  const { accounts, log } = bank({ clock, idleMs: 1_000 });
  await accounts.ask("ann", 1);
  await clock.advance(600);
  await accounts.ask("ann", 2);
  await clock.advance(600);
  expect(accounts.has("ann")).toBe(true);
  await clock.advance(400);
  await turn();
  expect([accounts.has("ann"), accounts.stats().passivated, clock.timers]).toEqual([false, 1, 0]);
  expect(await accounts.ask("ann", 4)).toBe(7);
  expect(log).toEqual(["ann loaded", "ann saved", "ann loaded"]);
});

it("never has two actors of one key, though a message comes while the state is saved", async () => {
  const clock = new VirtualClock();
  const { accounts, log, saved } = bank({ clock, idleMs: 1_000 });
  await accounts.ask("ann", 1);
  clock.setTimer(1_000, { onTimer: () => accounts.tryTell("ann", 2) }); // in the turn of the passivation
  await clock.advance(1_000);
  expect(await accounts.ask("ann", 4)).toBe(7);
  expect([log, saved.get("ann"), accounts.stats().made]).toEqual([["ann loaded", "ann saved", "ann loaded"], 1, 1]);
});

it("turns no message away in any of the turns in which an actor is put away", async () => {
  for (let turns = 0; turns < 32; turns += 1) {
    const clock = new VirtualClock();
    const actors = new KeyedActors<string, number, number>(4, () => (n) => n, { clock, idleMs: 1_000 });
    await actors.ask("ann", 1);
    const reply = Promise.withResolvers<number>();
    clock.setTimer(1_000, {
      onTimer() {
        let later = Promise.resolve();
        for (let i = 0; i < turns; i += 1) later = later.then(() => undefined);
        void later.then(() => reply.resolve(actors.ask("ann", 4)));
      },
    });
    await clock.advance(1_000);
    expect(await reply.promise).toBe(4);
  }
});

it("puts away who has been idle longest for one more than there may be, and turns it away while all are busy", async () => {
  const gate = Promise.withResolvers<void>();
  const { accounts, log } = bank({ maxActors: 2 }, gate.promise);
  for (const key of ["ann", "bob", "ann"]) await accounts.ask(key, 1);
  expect(accounts.stats()).toMatchObject({ actors: 2, idle: 2 });
  await accounts.ask("cem", 1);
  await turn();
  expect([accounts.has("ann"), accounts.has("bob"), accounts.has("cem")]).toEqual([true, false, true]);
  const waiting = [accounts.ask("ann", Infinity), accounts.ask("cem", Infinity)];
  await expect(accounts.ask("dan", 1)).rejects.toThrow(QueueFullError);
  await expect(accounts.tell("dan", 1)).rejects.toMatchObject({ limit: 2 });
  expect(accounts.tryTell("dan", 1)).toBe(false);
  expect(accounts.stats()).toMatchObject({ actors: 2, idle: 0, rejected: 3 });
  gate.resolve();
  expect(await Promise.all(waiting)).toEqual([2, 1]);
  expect(await accounts.ask("dan", 8)).toBe(8);
  await turn();
  expect(log.filter((line) => line.endsWith("saved"))).toEqual(["bob saved", "ann saved"]);
});

it("counts again an actor that a message brings back while it is being put away", async () => {
  const gate = Promise.withResolvers<void>();
  const { accounts } = bank({ maxActors: 1 }, gate.promise);
  await accounts.ask("ann", 1);
  const other = accounts.ask("bob", 1);
  const back = accounts.ask("ann", Infinity);
  await expect(accounts.ask("cem", 1)).rejects.toThrow(QueueFullError);
  gate.resolve();
  expect([await other, await back]).toEqual([1, 1]);
});

it("has no room for another beside one that was brought back, though one has failed for good", async () => {
  const gate = Promise.withResolvers<void>();
  const { accounts } = bank({ maxActors: 1, onFailure: () => "stop" }, gate.promise);
  await accounts.ask("ann", 1);
  const other = accounts.ask("bob", 0);
  const back = accounts.ask("ann", Infinity);
  await expect(other).rejects.toThrow("bob");
  await turn();
  await turn();
  expect([accounts.has("ann"), accounts.has("bob")]).toEqual([true, false]);
  await expect(accounts.ask("cem", 1)).rejects.toThrow(QueueFullError);
  gate.resolve();
  expect(await back).toBe(1);
});

it("makes another for a key whose actor has failed for good", async () => {
  const { accounts, log } = bank({ onFailure: () => "stop" });
  await accounts.ask("ann", 5);
  await expect(accounts.ask("ann", 0)).rejects.toThrow("ann");
  await turn();
  await turn();
  expect(accounts.has("ann")).toBe(false);
  expect(await accounts.ask("ann", 1)).toBe(6);
  expect(log).toEqual(["ann loaded", "ann saved", "ann loaded"]);
});

it("surfaces what a told message escalates", async () => {
  const { accounts } = bank({ onFailure: () => "escalate" });
  const unhandled = await unhandledIn(async () => {
    await accounts.tell("ann", 0);
    for (let round = 0; round < 4; round += 1) await turn();
  });
  expect(unhandled).toMatchObject([{ message: "ann" }]);
  expect(accounts.has("ann")).toBe(false);
});

it("leaves to its old actor no way to work beside the new one", async () => {
  const clock = new VirtualClock();
  const kept: { tell(message: string): Promise<boolean> }[] = [];
  const rooms = new KeyedActors<string, string>(
    4,
    (_, { self }) => {
      kept.push(self);
      return () => {};
    },
    { clock, idleMs: 100 },
  );
  await rooms.ask("lobby", "hello");
  await clock.advance(100);
  await turn();
  await expect(kept[0]?.tell("from the past")).rejects.toThrow(ClosedError);
});

it("names actors by key where a ring is found", async () => {
  const peers: KeyedActors<string, string, string> = new KeyedActors<string, string, string>(
    4,
    (key) => async (to) => (to === key ? key : peers.ask(to, key)),
    { name: "peer", onFailure: () => "resume" },
  );
  const error = await peers.ask("ann", "bob").catch((reason: WaitCycleError) => reason);
  expect(error).toMatchObject({ code: "WAIT_CYCLE", path: ["peer bob", "peer ann", "peer bob"] });
});

it("turns away who comes once it is closed, and ends all after what was accepted", async () => {
  const { accounts, saved } = bank();
  const asked = [accounts.ask("ann", 1), accounts.ask("bob", 2)];
  {
    await using closing = accounts;
    expect(closing.closed).toBe(false);
  }
  expect(await Promise.all(asked)).toEqual([1, 2]);
  expect(Object.fromEntries(saved)).toEqual({ ann: 1, bob: 2 });
  expect([accounts.closed, accounts.size]).toEqual([true, 0]);
  await expect(accounts.tell("ann", 1)).rejects.toThrow(ClosedError);
  await expect(accounts.ask("new", 1)).rejects.toThrow(ClosedError);
});

it("aborts all with one reason", async () => {
  const { accounts } = bank({}, new Promise(() => {}));
  const asked = [accounts.ask("ann", 1), accounts.ask("bob", 2)];
  const reason = new Error("enough");
  accounts.abort(reason);
  for (const each of asked) await expect(each).rejects.toBe(reason);
  await accounts.drain();
  expect(accounts.size).toBe(0);
});

it("takes any key, also an object that has no text", async () => {
  const actors = new KeyedActors<object, number, number>(1, () => (n) => n);
  const mute = {
    toString(): string {
      throw new Error("mute");
    },
  };
  const keys: object[] = [Object.create(null) as object, mute, {}];
  await expect(Promise.all(keys.map((key, at) => actors.ask(key, at)))).resolves.toEqual([0, 1, 2]);
  expect(actors.size).toBe(3);
});

it("refuses a bad wait for its end though there is no actor to wait for", async () => {
  const { accounts } = bank();
  const reason = new Error("enough");
  await expect(accounts.drain({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await expect(accounts.drain({ timeoutMs: Number.NaN })).rejects.toThrow(RangeError);
});

it("says what is wrong with an option, and is found by its name", () => {
  const bad = [{ maxActors: 0 }, { idleMs: -1 }, { whenFull: "throw" }, { name: 1 }];
  for (const options of bad) expect(() => bank(options as object)).toThrow(Object.keys(options)[0]);
  const { accounts } = bank({ name: "accounts" });
  expect(namedEntries().filter(({ name }) => name === accounts.name)).toMatchObject([{ kind: "keyed-actors" }]);
  expect(accounts.stats()).toEqual({
    actors: 0,
    maxActors: 10_000,
    idle: 0,
    made: 0,
    passivated: 0,
    rejected: 0,
    closed: false,
  });
});
