import type { Json } from "@sluice/jobs";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { faultOf, parseJson } from "./json.ts";

function nested(depth: number): Json {
  let value: Json = 1;
  for (let i = 0; i < depth; i += 1) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

it("reads any JSON, with or without a byte order mark", () => {
  const reads = fc.property(fc.json(), fc.boolean(), (text, hasMark) => {
    expect(parseJson(Buffer.from(`${hasMark ? "\uFEFF" : ""}${text}`))).toEqual({ value: JSON.parse(text) });
  });
  fc.assert(reads);
});

it.each([
  [[0x22, 0xff, 0x22], "must be UTF-8"],
  [[0x22, 0xed, 0xa0, 0x80, 0x22], "must be UTF-8"],
  [[0x22, 0xc3], "must be UTF-8"],
  [[], "must be JSON: "],
  [[0x7b], "must be JSON: "],
  [[...Buffer.from("NaN")], "must be JSON: "],
  [[...Buffer.from("{} {}")], "must be JSON: "],
])("refuses the bytes %j", (bytes, fault) => {
  expect(parseJson(Uint8Array.from(bytes))).toEqual({ fault: expect.stringContaining(fault) as string });
});

it("takes the last of the values that one key is given", () => {
  expect(parseJson(Buffer.from('{"id":"a","id":"b"}'))).toEqual({ value: { id: "b" } });
});

it("keeps a key that is called like a part of every object as a key", () => {
  const parsed = parseJson(Buffer.from('{"__proto__":{"admin":true}}'));
  expect("value" in parsed && Object.keys(parsed.value ?? {})).toEqual(["__proto__"]);
  expect("value" in parsed && (parsed.value as { admin?: unknown }).admin).toBe(undefined);
});

it("bounds the depth, and says where it ends", () => {
  expect(faultOf(nested(100))).toBeUndefined();
  expect(faultOf(nested(101))?.detail).toBe("must be nested at most 100 deep");
  expect(faultOf(nested(101))?.path.length).toBe(100);
});

it("survives a depth at which recursion would not", () => {
  const parsed = parseJson(Buffer.from("[".repeat(200_000) + "]".repeat(200_000)));
  expect("value" in parsed && faultOf(parsed.value)?.detail).toBe("must be nested at most 100 deep");
});

it("finds numbers that no other JSON could say", () => {
  const parsed = parseJson(Buffer.from('{"a":[1,1e999],"b":-1e999}'));
  expect("value" in parsed && faultOf(parsed.value)).toEqual({ path: ["b"], detail: "must be a number below 1.8e308" });
  expect(faultOf([1e308, -1e308, 2 ** 53])).toBeUndefined();
});

it("finds nothing wrong with whatever survives being written and read", () => {
  const fine = fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
    expect(faultOf(value as Json)).toBeUndefined();
  });
  fc.assert(fine);
});
