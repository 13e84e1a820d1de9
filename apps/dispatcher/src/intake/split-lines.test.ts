import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type Line, splitLines } from "./split-lines.ts";

async function* chunks(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part as string);
}

async function split(maxBytes: number, ...parts: readonly string[]): Promise<[number, string | undefined][]> {
  const lines: Line[] = (await Array.fromAsync(splitLines(chunks(...parts), maxBytes))).flat();
  return lines.map(({ line, bytes }) => [line, bytes === undefined ? undefined : Buffer.from(bytes).toString()]);
}

it("cuts at line feeds, takes a CR before one with it, and wants no end of the last line", async () => {
  expect(await split(10, "a\nb\r\n\n\rc\nd")).toEqual([
    [1, "a"],
    [2, "b"],
    [3, ""],
    [4, "\rc"],
    [5, "d"],
  ]);
  expect(await split(10, "a\n")).toEqual([[1, "a"]]);
  expect(await split(10)).toEqual([]);
  expect(await split(10, "", "\n", "")).toEqual([[1, ""]]);
});

it("takes a line of maxBytes, and says of a longer one only that it was there", async () => {
  expect(await split(3, "abc\nabcd\nabc\r\nabcd\r\nab")).toEqual([
    [1, "abc"],
    [2, undefined],
    [3, "abc"],
    [4, undefined],
    [5, "ab"],
  ]);
  expect(await split(3, "ab", "cd", "ef", "g\nx")).toEqual([
    [1, undefined],
    [2, "x"],
  ]);
});

it("gives what a piece completes before it asks for the next", async () => {
  const lines = splitLines(chunks("a\nb", "\n"), 10);
  expect((await lines.next()).value).toMatchObject([{ line: 1 }]);
  expect((await lines.next()).value).toMatchObject([{ line: 2 }]);
  expect((await lines.next()).done).toBe(true);
});

it("finds the same lines however the bytes are cut", async () => {
  const text = fc.string({ unit: fc.constantFrom("a", "ä", "\n", "\r"), maxLength: 40 });
  const same = fc.asyncProperty(text, fc.array(fc.nat(60), { maxLength: 6 }), async (whole, cuts) => {
    const bytes = Buffer.from(whole);
    const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b), bytes.length];
    const parts = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
    const found = (await Array.fromAsync(splitLines(chunks(...parts), 5))).flat();
    const expected = whole.split("\n").map((line) => Buffer.from(line.replace(/\r$/, "")));
    if (expected.at(-1)?.byteLength === 0 && !whole.endsWith("\r")) expected.pop();
    expect(found.map(({ bytes: line }) => line && Buffer.from(line).toString())).toEqual(
      expected.map((line) => (line.byteLength > 5 ? undefined : line.toString())),
    );
    expect(found.map(({ line }) => line)).toEqual(expected.map((_, i) => i + 1));
  });
  await fc.assert(same, { numRuns: 1_000 });
});

it("does not keep what it skips", async () => {
  const part = Buffer.alloc(1_000, 0x61);
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 10_000; i += 1) yield part; // one part, ten million bytes: kept, they would be copied at the end
    yield Buffer.from("\nb");
  }
  const found = (await Array.fromAsync(splitLines(endless(), 5))).flat();
  expect(found).toEqual([
    { line: 1, bytes: undefined },
    { line: 2, bytes: Buffer.from("b") },
  ]);
});
