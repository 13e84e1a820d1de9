import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { keyedDebounce, type KeyedDebounceOptions } from "./keyed-debounce.ts";
import { keyedThrottle } from "./keyed-throttle.ts";

type Call = [document: string, text: string];

interface Made {
  readonly clock: VirtualClock;
  readonly runs: string[];
  readonly save: ReturnType<typeof keyedDebounce<string, unknown, Call, string>>;
}

function make(options: Partial<KeyedDebounceOptions<string, Call>> = {}): Made {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const run = (document: string, text: string): string => {
    runs.push(`${clock.now()} ${document}: ${text}`);
    return text;
  };
  return { clock, runs, save: keyedDebounce(run, 100, { key: (document) => document, clock, ...options }) };
}

it("paces each key by its own calls", async () => {
  const { clock, runs, save } = make();
  save("a", "1");
  await clock.advance(60);
  save("b", "1");
  save("a", "2");
  await clock.advance(50);
  save("b", "2");
  await clock.runToIdle();
  expect(runs).toEqual(["160 a: 2", "210 b: 2"]);
});

it("forgets a key when its burst is over, also if nobody calls any more, and then has no timer", async () => {
  const { clock, save } = make({ leading: true });
  for (let document = 0; document < 1_000; document += 1) save(`${document}`, "1");
  expect(save.keys()).toBe(1_000);
  await clock.advance(99);
  expect(save("7", "2")).toBe("1"); // within the burst of its first call
  await clock.advance(300);
  expect([save.keys(), clock.timers]).toEqual([0, 0]);
  expect(save("7", "3")).toBe("3");
});

it("keeps a key whose call waits for longer than the edges are apart", async () => {
  const { clock, runs, save } = make({ maxWaitMs: 300 });
  for (let at = 0; at < 1_000; at += 50) {
    save("a", `${at}`);
    await clock.advance(50);
  }
  await clock.runToIdle();
  expect(runs).toEqual(["300 a: 250", "600 a: 550", "900 a: 850", "1050 a: 950"]);
});

it("keeps a key whose burst goes on, though none of its calls waits", async () => {
  const { clock, runs, save } = make({ leading: true, trailing: false });
  for (let at = 0; at < 1_000; at += 60) {
    save("a", `${at}`);
    await clock.advance(60);
  }
  expect(runs).toEqual(["0 a: 0"]);
});

it("keeps the process alive for a call that waits, and not for a key that is remembered", async () => {
  const { clock, save } = make({ leading: true });
  save("a", "1");
  await clock.runToIdle();
  expect([clock.now(), save.keys()]).toEqual([0, 1]);
});

it("runs what waits for the oldest key early when there are too many, and loses nothing", async () => {
  const { clock, runs, save } = make({ maxKeys: 2 });
  save("a", "1");
  save("b", "1");
  save("c", "1");
  expect([runs, save.keys()]).toEqual([["0 a: 1"], 2]);
  await clock.runToIdle();
  expect(runs).toEqual(["0 a: 1", "100 b: 1", "100 c: 1"]);
});

it("loses no call to what another throws that is run early for it", async () => {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const run = (document: string): void => {
    runs.push(document);
    if (document === "a") throw new Error("disk full");
  };
  const save = keyedDebounce(run, 100, { key: (document) => document, clock, maxKeys: 1 });
  save("a");
  expect(() => save("b")).toThrow("disk full");
  await clock.runToIdle();
  expect(runs).toEqual(["a", "b"]);
});

it("has one timer for its keys, and no more of these than it may, though a run calls for others", async () => {
  const clock = new VirtualClock();
  const run = (key: number): void => {
    if (key < 1_000) save(key + 1_000);
  };
  const save = keyedDebounce(run, 100, { key: (key: number) => key, clock, maxKeys: 1 });
  for (let key = 0; key < 20; key += 1) save(key);
  expect([save.keys(), clock.timers]).toEqual([1, 2]); // that of the call, and that of the memory
  await clock.runToIdle();
});

it("cancels, flushes and looks at one key, or at all", async () => {
  const { clock, runs, save } = make();
  for (const document of ["a", "b", "c", "d"]) save(document, "1");
  save.cancel("a");
  save.flush("b");
  expect([save.pending("a"), save.pending("b"), save.pending("c"), save.pending("x"), save.pending()]).toEqual([
    false,
    false,
    true,
    false,
    true,
  ]);
  save.flush();
  expect([runs, save.pending()]).toEqual([["0 b: 1", "0 c: 1", "0 d: 1"], false]);
  save("a", "2");
  save.cancel();
  await clock.runToIdle();
  expect(runs).toHaveLength(3);
});

it("flushes with the result of the key's run, undefined if none waits, and with those of all keys' runs", () => {
  const { runs, save } = make();
  for (const document of ["a", "b", "c"]) save(document, `${document}1`);
  save("b", "b2");
  expect([save.flush("b"), save.flush("b"), save.flush("x")]).toEqual(["b2", undefined, undefined]);
  save("b", "b3");
  save.cancel("c");
  expect([save.flush(), save.flush(), runs.length]).toEqual([["a1", "b3"], [], 3]);
});

it("flushes a function that returns a promise with that of the run", async () => {
  const down = new Error("down");
  const run = async (id: number): Promise<string> => (id < 0 ? Promise.reject(down) : `saved ${id}`);
  const options = { key: Math.abs, clock: new VirtualClock(), leading: false };
  for (const save of [keyedDebounce(run, 100, options), keyedThrottle(run, 100, options)]) {
    for (const id of [1, 2, 3, -4]) void save(id);
    expect(await save.flush(1)).toBe("saved 1");
    await expect(save.flush(4)).rejects.toBe(down);
    const [second, third, ...none] = save.flush();
    expect([await second, await third, none]).toEqual(["saved 2", "saved 3", []]);
  }
});

it("flushes with undefined within a run of the key, whose call waits on", async () => {
  const clock = new VirtualClock();
  const flushed: unknown[] = [];
  const save = keyedDebounce(
    (id: number, left: number): number => {
      if (left > 0) save(id, left - 1);
      if (left > 0) flushed.push(save.flush(id), save.pending(id));
      return left;
    },
    100,
    { key: (id) => id, clock },
  );
  save(7, 1);
  expect([save.flush(7), flushed]).toEqual([1, [undefined, true]]);
  await clock.runToIdle();
  expect(save.pending()).toBe(false);
});

it("throttles each key at its own rhythm", async () => {
  const clock = new VirtualClock();
  const told: string[] = [];
  const tell = keyedThrottle((client: number, done: number) => told.push(`${clock.now()} ${client}: ${done}`), 100, {
    key: (client) => client,
    clock,
  });
  tell(1, 10);
  await clock.advance(50);
  tell(2, 10);
  tell(1, 20);
  tell(2, 20);
  await clock.advance(1_000);
  expect([told, tell.keys(), clock.timers]).toEqual([["0 1: 10", "50 2: 10", "100 1: 20", "150 2: 20"], 0, 0]);
});

it("throttles a key at its own rhythm though it is swept by that of another", async () => {
  const clock = new VirtualClock();
  const told: string[] = [];
  const tell = keyedThrottle((client: string) => told.push(`${clock.now()} ${client}`), 100, { key: String, clock });
  tell("a");
  await clock.advance(30);
  tell("b");
  await clock.advance(30);
  tell("b"); // waits until 130
  await clock.advance(150); // swept at 100 and 200
  tell("b");
  await clock.advance(90); // swept at 300
  tell("b");
  tell.flush("b");
  await clock.advance(99); // less than the wait
  tell("b");
  await clock.runToIdle();
  expect(told).toEqual(["0 a", "30 b", "130 b", "230 b", "300 b", "400 b"]);
});

it("keeps this, and refuses bad options when it is made", () => {
  const clock = new VirtualClock();
  const store = {
    name: "store",
    save: keyedDebounce(
      function (this: { readonly name: string }, id: number) {
        return `${this.name} ${id}`;
      },
      100,
      { key: (id) => id, clock, leading: true },
    ),
  };
  expect(store.save(7)).toBe("store 7");
  const key = String;
  expect(() => keyedDebounce(() => {}, -1, { key })).toThrow(RangeError);
  expect(() => keyedThrottle(() => {}, -1, { key })).toThrow(RangeError);
  expect(() => keyedDebounce(() => {}, 1, { key, maxKeys: 0 })).toThrow(RangeError);
});
