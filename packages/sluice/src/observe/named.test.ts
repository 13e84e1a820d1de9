import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { namedEntries, type Observed, register, type Stats } from "../internal/names.ts";
import { named } from "./named.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

class Thing implements Observed {
  readonly #stats: () => Stats;

  constructor(name: string | undefined, stats: () => Stats = () => ({})) {
    this.#stats = stats;
    register("thing", { name }, this);
  }

  stats(): Stats {
    return this.#stats();
  }
}

/** What is found under names that only this test gave. */
function foundUnder(prefix: string): unknown[] {
  return named().filter(({ name }) => name.startsWith(prefix));
}

it("lists what has a name by kind and name with its stats of now, in the order of making", () => {
  let depth = 1;
  const kept = [new Thing("list b", () => ({ depth })), new Thing("list a"), new Thing(undefined)];
  depth = 2;
  expect(foundUnder("list")).toEqual([
    { kind: "thing", name: "list b", stats: { depth: 2 } },
    { kind: "thing", name: "list a", stats: {} },
  ]);
  expect(kept).toHaveLength(3);
});

it("lists two things of one name, each by itself", () => {
  const kept = [1, 2].map((id) => new Thing("twin", () => ({ id })));
  expect(foundUnder("twin")).toEqual(kept.map((thing) => ({ kind: "thing", name: "twin", stats: thing.stats() })));
});

it("gives the error of a stats() that throws in its place, and the others all the same", () => {
  const failure = new Error("broken");
  const fail = (): never => {
    throw failure;
  };
  const kept = [new Thing("isolated 1"), new Thing("isolated 2", fail), new Thing("isolated 3")];
  expect(foundUnder("isolated")).toEqual([
    { kind: "thing", name: "isolated 1", stats: {} },
    { kind: "thing", name: "isolated 2", error: failure },
    { kind: "thing", name: "isolated 3", stats: {} },
  ]);
  expect(kept).toHaveLength(3);
});

it("ends though each stats() makes another thing with a name", () => {
  const kept: Thing[] = [];
  const breed = (): Stats => ({ made: kept.push(new Thing("breeder", breed)) });
  breed();
  expect(foundUnder("breeder")).toHaveLength(1);
  expect(foundUnder("breeder")).toHaveLength(2);
});

it("keeps nothing alive, and forgets the name of what is gone", async () => {
  makeAndDrop(1_000);
  const kept = new Thing("weak but held");
  for (let tries = 0; weakNames().length > 1 && tries < 100; tries += 1) {
    await turn(); // a target that was looked at lives to the end of the turn
    collectGarbage();
  }
  expect(weakNames()).toEqual(["weak but held"]);
  expect(foundUnder("weak")).toEqual([{ kind: "thing", name: kept === undefined ? "" : "weak but held", stats: {} }]);
});

function makeAndDrop(count: number): void {
  expect(Array.from({ length: count }, (_, i) => new Thing(`weak ${i}`))).toHaveLength(count);
}

function weakNames(): string[] {
  return namedEntries()
    .map(({ name }) => name)
    .filter((name) => name.startsWith("weak"));
}

it("refuses a name that is no string", () => {
  expect(() => new Thing(7 as unknown as string)).toThrow(TypeError);
  expect(named().some(({ name }) => typeof name !== "string")).toBe(false);
});
