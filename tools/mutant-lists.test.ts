import { parseSync } from "vite";
import { expect, it } from "vitest";
import { mutantLists, readMutants } from "./mutant-lists.ts";

it.each(mutantLists())("%s breaks code that is there, and leaves it code", (list) => {
  const mutants = readMutants(list);
  const unparsed = mutants.filter(({ path, broken }) => parseSync(path, broken).errors.length > 0);
  expect(unparsed.map(({ title }) => title)).toEqual([]);
  expect(new Set(mutants.map(({ title }) => title)).size).toBe(mutants.length);
});
