import * as fc from "fast-check";
import { expect, it } from "vitest";
import { seededRandom } from "./seeded-random.ts";

function draw(seed: number, count: number): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, random);
}

function word(value: bigint): bigint {
  return BigInt.asUintN(32, value);
}

/** The published algorithm, word for word, on integers that cannot overflow. */
function published(seed: number, count: number): number[] {
  let [a, b, c, counter] = [0n, word(BigInt(seed)), word(BigInt(seed) >> 32n), 1n];
  const raw = (): number => {
    const sum = word(a + b + counter);
    counter = word(counter + 1n);
    a = b ^ (b >> 9n);
    b = word(c + (c << 3n));
    c = word(((c << 21n) | (c >> 11n)) + sum);
    return Number(sum) / 2 ** 32;
  };
  for (let round = 0; round < 12; round += 1) raw();
  return Array.from({ length: count }, raw);
}

function agrees(seed: number): void {
  expect(draw(seed, 20)).toEqual(published(seed, 20));
}

it("gives the numbers of the published algorithm for any seed", () => {
  fc.assert(fc.property(fc.maxSafeInteger(), agrees));
});

it("gives the same numbers for the same seed from one version to the next", () => {
  expect(draw(1, 3)).toEqual([0.4684900725260377, 0.4359325869008899, 0.39758921484462917]);
});

it("spreads its numbers evenly over 0 to 1, without 1", () => {
  const cells = Array.from({ length: 10 }, () => 0);
  for (const value of draw(7, 100_000)) {
    const cell = Math.floor(value * 10);
    cells[cell] = (cells[cell] ?? 0) + 1;
  }
  expect(cells).toHaveLength(10);
  for (const count of cells) expect(Math.abs(count - 10_000)).toBeLessThan(500);
});

it("gives neighbouring seeds nothing in common", () => {
  const firsts = Array.from({ length: 1_000 }, (_, seed) => draw(seed, 1)[0]);
  expect(new Set(firsts).size).toBe(1_000);
});

it.each([1.5, Number.NaN, 2 ** 53])("refuses %d as a seed", (seed) => {
  expect(() => seededRandom(seed)).toThrow(RangeError);
});
