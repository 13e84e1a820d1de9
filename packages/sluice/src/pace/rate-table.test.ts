import * as fc from "fast-check";
import { expect, it } from "vitest";
import { seededRandom } from "../testing/seeded-random.ts";
import { type RateKey, RateTable } from "./rate-table.ts";

const keys = fc.oneof(fc.nat(40), fc.nat(40).map(String));

it("is a map from keys to numbers, whatever comes and goes in which order", () => {
  const step = fc.record({ key: keys, act: fc.constantFrom("put", "put", "put", "remove", "look") });
  const plans = fc.property(fc.array(step, { maxLength: 300 }), fc.nat(), (plan, seed) => {
    const table = new RateTable(seededRandom(seed));
    const model = new Map<RateKey, number>();
    for (const [id, { key, act }] of plan.entries()) {
      const slot = table.find(key);
      expect(slot === -1 ? undefined : table.get(slot)).toBe(model.get(key));
      if (act === "put") {
        if (slot === -1) table.add(id);
        else table.set(slot, id);
        model.set(key, id);
      } else if (act === "remove" && slot !== -1) {
        table.remove(slot);
        model.delete(key);
      } else if (act === "look") {
        const used = table.nextInUse(Infinity * Math.sign(table.size) || 4);
        expect(used === -1).toBe(model.size === 0);
        if (used !== -1) expect([...model.values()]).toContain(table.get(used));
      }
      expect(table.size).toBe(model.size);
    }
    for (const [key, value] of model) expect(table.get(table.find(key))).toBe(value);
  });
  fc.assert(plans, { numRuns: 1_000 });
});

it("comes by every key in turn", () => {
  const table = new RateTable(seededRandom(1));
  for (let key = 0; key < 1_000; key += 1) if (table.find(key) === -1) table.add(key);
  const seen = new Set<number>();
  for (let look = 0; look < 1_000; look += 1) seen.add(table.get(table.nextInUse(Infinity)));
  expect(seen.size).toBe(1_000);
});

it("keeps all numbers when it grows and when it shrinks, and shrinks once most are gone", () => {
  const table = new RateTable(seededRandom(2));
  for (let key = 0; key < 100_000; key += 1) if (table.find(`user-${key}`) === -1) table.add(key);
  expect(table.size).toBe(100_000);
  const { slots } = table;
  expect(16 * slots).toBeLessThanOrEqual(32 * 100_000);
  for (let key = 0; key < 100_000; key += 1) expect(table.get(table.find(`user-${key}`))).toBe(key);
  for (let key = 100; key < 100_000; key += 1) table.remove(table.find(`user-${key}`));
  for (let look = 0; look < 1_000_000; look += 1) table.nextInUse(1);
  expect(table.slots).toBeLessThan(slots / 100);
  for (let key = 0; key < 100; key += 1) expect(table.get(table.find(`user-${key}`))).toBe(key);
  table.map((value) => value + 1);
  expect(table.get(table.find("user-7"))).toBe(8);
});

it("keeps keys apart that resemble each other", () => {
  for (const make of [
    (id: number) => id,
    (id: number) => id * 2 ** 20,
    String,
    (id: number) => `tenant/${id % 10}/${id}`,
  ]) {
    const table = new RateTable(seededRandom(3));
    for (let id = 0; id < 20_000; id += 1) if (table.find(make(id)) === -1) table.add(id);
    expect(table.size).toBe(20_000);
  }
});

it("hashes by its seed, so that who knows the code can't choose keys that meet", () => {
  const places = [4, 5].map((seed) => {
    const table = new RateTable(seededRandom(seed));
    return Array.from({ length: 11 }, (_, id) => {
      if (table.find(`user-${id}`) === -1) table.add(id);
      return table.find(`user-${id}`);
    });
  });
  expect(places[0]).not.toEqual(places[1]);
});
