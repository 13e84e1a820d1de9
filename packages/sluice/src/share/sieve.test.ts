import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { policies, ROOM, traces } from "./eviction.stage.ts";
import { Sieve, SieveNode } from "./sieve.ts";

describe("of the reads of a seeded trace", () => {
  it.each(Object.entries(traces))("finds at least as many as LRU would: %s", (_, draw) => {
    const trace = draw();
    expect(hitRate("sluice", trace)).toBeGreaterThanOrEqual(hitRate("lru", trace));
  });

  it("finds at least 0.95 of what can be found on Zipf 0.9 without foresight, and 0.85 of what Belady's optimum does", () => {
    const trace = traces.zipf();
    const found = hitRate("sluice", trace);
    expect(found).toBeGreaterThan(0.95 * hitRate("popular", trace));
    expect(found).toBeGreaterThan(0.85 * hitRate("belady", trace));
  });

  it("finds all that others miss in a loop that is little larger than the cache", () => {
    const trace = traces.loop();
    expect(hitRate("lru", trace)).toBe(0);
    expect(hitRate("sluice", trace)).toBeGreaterThan(0.9 * hitRate("belady", trace));
  });

  it("compares with a ceiling: 0.92 of Belady's optimum on Zipf 0.9 is beyond whatever has no foresight", () => {
    const trace = traces.zipf();
    expect(hitRate("popular", trace)).toBeLessThan(0.92 * hitRate("belady", trace));
  });
});

function hitRate(policy: keyof typeof policies, trace: readonly number[]): number {
  return policies[policy](trace, ROOM);
}

it("lets go what was not used on probation before anything that has proven itself", () => {
  const { nodes, use, evict, add } = stage();
  for (let key = 0; key < 20; key += 1) add(key);
  for (let key = 0; key < 20; key += 2) use(key);
  const gone = Array.from({ length: 8 }, evict);
  expect(gone).toEqual([1, 3, 5, 7, 9, 11, 13, 15]);
  for (let key = 100; key < 200; key += 1) {
    add(key);
    evict();
  }
  expect([...nodes.keys()].filter((key) => Number(key) < 20 && Number(key) % 2 === 0)).toHaveLength(10);
});

it("takes back without probation what had to go a little while ago, but not what had to go long ago", () => {
  const { nodes, evict, add } = stage();
  for (let key = 0; key < 10; key += 1) add(key);
  const turnOver = (key: number): void => {
    evict();
    add(key);
  };
  turnOver(10);
  expect(nodes.has(0)).toBe(false);
  turnOver(0);
  expect(nodes.get(0)?.isYoung).toBe(false);
  for (let key = 11; key < 60; key += 1) turnOver(key);
  turnOver(1);
  expect(nodes.get(1)?.isYoung).toBe(true);
});

it("gives what replaces a node the standing of that node", () => {
  const { sieve, nodes, use, add } = stage();
  add(1);
  use(1);
  const before = nodes.get(1) as SieveNode;
  sieve.remove(before);
  const after = new SieveNode(1);
  sieve.add(after, 3, before);
  expect(after).toMatchObject({ isUsed: true, isYoung: true, weight: 3 });
  sieve.remove(after);
  sieve.add(after, 2, after);
  expect(after).toMatchObject({ isUsed: true, isYoung: true, weight: 2 });
  expect([sieve.size, sieve.weight]).toEqual([1, 2]);
});

it("picks as a list with two hands would, and keeps I1 to I3, under any plan of uses, removals and picks", () => {
  const step = fc.record({
    act: fc.constantFrom("read", "read", "read", "remove", "replace", "pick"),
    key: fc.nat({ max: 14 }),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 120 }), play), { numRuns: 500 });
});

function play(plan: readonly { readonly act: string; readonly key: number }[]): void {
  const room = 6;
  const { sieve, nodes, use, evict, add, remove, replace } = stage();
  const model = new Model();
  for (const { act, key } of plan) {
    const node = nodes.get(key);
    if (act === "pick") {
      if (nodes.size > 0) expect(evict()).toBe(model.evict());
    } else if (act === "remove") {
      if (node !== undefined) remove(node);
      model.remove(key);
    } else if (node === undefined) {
      if (nodes.size >= room) expect(evict()).toBe(model.evict());
      add(key);
      model.add(key);
    } else if (act === "replace") {
      replace(node);
      model.replace(key);
    } else {
      use(key);
      model.use(key);
    }
    expect([...nodes.keys()]).toEqual(model.list.map((each) => each.key)); // I1
    expect([...nodes.values()].map(({ isYoung }) => isYoung)).toEqual(model.list.map(({ isYoung }) => isYoung)); // I2, I3
    expect([sieve.size, sieve.weight]).toEqual([nodes.size, nodes.size]); // I1, I2
  }
}

/** The same in the plainest way: a list, and hands that know behind whom they are. */
class Model {
  list: { readonly key: number; isYoung: boolean; isUsed: boolean }[] = [];
  #behind: Record<"hand" | "young", number | undefined> = { hand: undefined, young: undefined };
  #ghosts: number[][] = [[], []];

  add(key: number): void {
    const isKnown = this.#ghosts.some((each) => each.includes(key));
    this.#ghosts = this.#ghosts.map((each) => each.filter((ghost) => ghost !== key));
    this.list.push({ key, isYoung: !isKnown, isUsed: false });
  }

  use(key: number): void {
    for (const each of this.list) if (each.key === key) each.isUsed = true;
  }

  replace(key: number): void {
    const node = this.list.find((each) => each.key === key);
    this.remove(key);
    if (node !== undefined) this.list.push({ ...node });
  }

  remove(key: number): void {
    const at = this.list.findIndex((each) => each.key === key);
    if (at === -1) return;
    for (const hand of ["hand", "young"] as const)
      if (this.#behind[hand] === key) this.#behind[hand] = this.list[at - 1]?.key;
    this.list.splice(at, 1);
  }

  evict(): number {
    for (;;) {
      const isTrial = this.list.filter(({ isYoung }) => isYoung).length * 10 > this.list.length;
      const hand = isTrial ? "young" : "hand";
      const at = this.list.findIndex(({ key }) => key === this.#behind[hand]) + 1;
      const node = this.list[at];
      this.#behind[hand] = node?.key;
      if (node === undefined || node.isYoung !== isTrial) continue;
      if (node.isUsed) {
        if (isTrial) node.isYoung = false;
        else node.isUsed = false;
        continue;
      }
      if (isTrial) this.#ghosts[0]?.push(node.key);
      if ((this.#ghosts[0]?.length ?? 0) > this.list.length) this.#ghosts = [[], this.#ghosts[0] ?? []];
      this.remove(node.key);
      return node.key;
    }
  }
}

function stage(): {
  readonly sieve: Sieve;
  /** Of all that are in, in the order in which they came. */
  readonly nodes: ReadonlyMap<unknown, SieveNode>;
  readonly add: (key: number) => void;
  readonly remove: (node: SieveNode) => void;
  readonly replace: (node: SieveNode) => void;
  readonly use: (key: number) => void;
  readonly evict: () => unknown;
} {
  const sieve = new Sieve();
  const nodes = new Map<unknown, SieveNode>();
  const remove = (node: SieveNode): void => {
    sieve.remove(node);
    nodes.delete(node.key);
  };
  const put = (node: SieveNode, before?: SieveNode): void => {
    sieve.add(node, 1, before);
    nodes.set(node.key, node);
  };
  return {
    sieve,
    nodes,
    add: (key) => put(new SieveNode(key)),
    remove,
    replace(node) {
      remove(node);
      put(new SieveNode(node.key), node);
    },
    use(key) {
      const node = nodes.get(key);
      if (node !== undefined) node.isUsed = true;
    },
    evict() {
      const node = sieve.pick();
      remove(node);
      return node.key;
    },
  };
}
