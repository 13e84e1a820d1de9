import * as fc from "fast-check";
import { expect, it } from "vitest";
import { compilePattern, isLiteral } from "./pattern.ts";

it.each([
  ["a.b", "a.b", true],
  ["a.b", "axb", false],
  ["a.*", "a.", true],
  ["a.*", "a", false],
  ["*", "", true],
  ["*a", "ba", true],
  ["*a", "ab", false],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["ab*ba", "aba", false],
  ["*a*b*", "xaxbx", true],
  ["*a*b*", "ba", false],
  ["a**b", "ab", true],
  ["*ab*b", "abb", true],
])("%s against %s is %s", (pattern, value, expected) => {
  expect(compilePattern(pattern)(value)).toBe(expected);
});

it("knows which patterns match one value only", () => {
  expect(["a.b", "", "a.*", "*"].map(isLiteral)).toEqual([true, true, false, false]);
});

it("matches as a regular expression would, anchored and with .* for each star", () => {
  const agree = fc.property(letters("ab.*"), letters("ab."), (source, value) => {
    const escaped = source.split("*").map((piece) => piece.replaceAll(".", "\\."));
    expect(compilePattern(source)(value)).toBe(new RegExp(`^${escaped.join(".*")}$`).test(value));
  });
  fc.assert(agree, { numRuns: 2_000 });
});

it("reads a long value once for each piece, where a regular expression would never end", () => {
  const value = "a".repeat(100_000);
  expect(compilePattern(`${"a*".repeat(30)}b`)(value)).toBe(false);
});

function letters(unit: string): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...Array.from(unit)), maxLength: 8 });
}
