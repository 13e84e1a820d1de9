import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { toJson } from "./json.ts";

it("gives text that comes back as it went in", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
      expect(JSON.parse(toJson("value", value, Infinity))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 100, examples: [["\ud800 € 😀 \u0000"], [{ ["__proto__"]: 1 }]] },
  );
});

it("refuses what would come back otherwise, whatever is around it", () => {
  const odd = fc.constantFrom<unknown>(
    NaN,
    -Infinity,
    1n,
    Symbol("s"),
    () => 1,
    new Map(),
    new URL("http://a.example"),
  );
  const around = fc.constantFrom<(inner: unknown) => unknown>(
    (inner) => inner,
    (inner) => [1, inner],
    (inner) => ({ a: { b: inner } }),
  );
  fc.assert(
    fc.property(odd, around, (value, wrap) => {
      expect(() => toJson("value", wrap(value), Infinity)).toThrow(/^value/);
    }),
  );
});

it.each([
  ["value must be JSON, got undefined", undefined],
  ["value[1] must be JSON, got undefined", [1, undefined]],
  ["value[0] must be JSON, got undefined", Array(1)],
  ["value.a[0].b must be a finite number, got NaN", { a: [{ b: NaN }] }],
  ["value.at must be JSON, got an instance of URL", { at: new URL("http://a.example") }],
  ["value.toJSON must be JSON, got function", { toJSON: () => 1 }],
])("says: %s", (message, value) => {
  expect(() => toJson("value", value, Infinity)).toThrow(message);
});

it("takes one object twice, but not within itself", () => {
  const shared = { n: 1 };
  expect(toJson("value", [shared, shared, { shared }], Infinity)).toBe('[{"n":1},{"n":1},{"shared":{"n":1}}]');
  const cycle: unknown[] = [];
  cycle.push({ cycle });
  expect(() => toJson("value", cycle, Infinity)).toThrow("value[0].cycle must be JSON, got a cycle");
});

it("takes objects of another realm, and those without a prototype", () => {
  const value: unknown = runInNewContext("({ a: [1] })");
  expect(toJson("value", [value, Object.create(null)], Infinity)).toBe('[{"a":[1]},{}]');
});

it("takes 200 levels and no more", () => {
  const nest = (levels: number): unknown => (levels === 0 ? 1 : [nest(levels - 1)]);
  expect(toJson("value", nest(200), Infinity).length).toBe(401);
  expect(() => toJson("value", nest(201), Infinity)).toThrow(/must be at most 200 levels deep$/);
});

it.each(["a", "é", "€", "😀"])("counts bytes of UTF-8: %s", (char) => {
  const bytes = Buffer.byteLength(JSON.stringify(char.repeat(10)));
  expect(toJson("value", char.repeat(10), bytes)).toBe(`"${char.repeat(10)}"`);
  expect(() => toJson("value", char.repeat(10), bytes - 1)).toThrow(RangeError);
});

it("does not write out a text that is far too long to say how long it is", () => {
  expect(() => toJson("value", "é".repeat(100), 50)).toThrow(
    "value must be at most 50 bytes as JSON, got at least 102",
  );
});
