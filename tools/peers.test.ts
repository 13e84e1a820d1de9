import { expect, it } from "vitest";
import { faults } from "./peers.ts";

const titles = new Set(["frees the place", "a | b", "C032: counts"]);
const table = (...rows: readonly string[]): string =>
  ["# Peers", "", "| Peer | Offers | Where | Here |", "| --- | --- | --- | --- |", ...rows, "", "Words."].join("\n");

it("finds nothing wrong with rows whose test passed, or that say why there is none", () => {
  const text = table(
    "| p-limit | a cap | README | `frees the place` |",
    "| p-limit | pipes | README | `a \\| b` |",
    "| p-queue | a cap | README | `C032: counts` |",
    "| p-queue | classes of queues | README | not offered: one class is enough |",
  );
  expect(faults(text, titles)).toEqual([]);
});

it.each([
  ["| p-limit | a cap | README | `frees a place` |", 'no test that passed is called "frees a place"'],
  ["| p-limit | a cap | README | frees the place |", "must end with"],
  ["| p-limit | a cap | README | not offered: |", "must end with"],
  ["| p-limit | a cap | README | not offered |", "must end with"],
  ["| p-limit | a cap | README | |", "filled columns"],
  ["| p-limit | a cap | `frees the place` |", "filled columns"],
  ["| p-limit | | README | `frees the place` |", "filled columns"],
])("refuses the row %s", (row, why) => {
  const found = faults(table(row), titles);
  expect(found).toHaveLength(1);
  expect(found[0]).toContain("line 5");
  expect(found[0]).toContain(why);
});

it("refuses a row that is there twice", () => {
  const row = "| p-limit | a cap | README | `frees the place` |";
  expect(faults(table(row, row), titles)).toEqual(["line 6 repeats p-limit: a cap"]);
});

it("refuses a document without rows", () => {
  expect(faults(table(), titles)).toEqual(["there is no row"]);
});
