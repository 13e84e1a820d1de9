import { expect, it } from "vitest";
import { compilePath, textAt } from "./path.ts";

const data = {
  repository: { full_name: "o/r", private: false, size: 0 },
  labels: [{ name: "bug" }],
  nothing: null,
  text: "abc",
};

it.each([
  ["repository.full_name", "o/r"],
  ["repository.private", "false"],
  ["repository.size", "0"],
  ["labels.0.name", "bug"],
  ["text", "abc"],
])("reads %s as %j", (path, expected) => {
  expect(textAt(data, compilePath(path))).toBe(expected);
});

it.each([
  "repository",
  "labels",
  "labels.1.name",
  "nothing",
  "nothing.more",
  "missing.deep",
  "text.0",
  "text.length",
  "labels.length",
  "constructor.name",
  "repository.toString",
  "__proto__",
])("finds no text at %s", (path) => {
  expect(textAt(data, compilePath(path))).toBeUndefined();
});

it("finds nothing in data that is no object", () => {
  for (const value of [null, "text", 5, true, []]) expect(textAt(value, ["a"])).toBeUndefined();
});
