import { expect, it } from "vitest";
import { FAILURE_MODES, faults, type Kind, PEERS, SEMANTICS, unlisted } from "./tables.ts";

const titles = new Set([
  "frees the place",
  "a | b",
  "C032: counts",
  "gives `undefined`",
  "F10.1: tells",
  "F10.2: tells",
  "C081, F10.5: holds",
]);

function table(kind: Kind, ...rows: readonly string[]): string {
  const head = [`| ${kind.columns.join(" | ")} |`, `| ${kind.columns.map(() => "---").join(" | ")} |`];
  return ["# Table", "", ...head, ...rows, "", "Words."].join("\n");
}

function faultsOf(kind: Kind, ...rows: readonly string[]): string[] {
  return faults({ ...kind, minRows: 0 }, new Map([["x.md", table(kind, ...rows)]]), titles);
}

it("finds nothing wrong with rows whose test passed, or that say why there is none", () => {
  const peers = [
    "| p-limit | a cap | README | `frees the place` |",
    "| p-limit | pipes | README | `a \\| b` |",
    "| p-queue | a cap | README | `C032: counts` |",
    "| p-queue | nothing | README | `` gives `undefined` `` |",
    "| p-queue | classes of queues | README | not offered: one class is enough |",
  ];
  expect(faultsOf(PEERS, ...peers)).toEqual([]);
  const semantics = ["| Go | a cap | differs: none |", "| Go | another | not offered: none |"];
  expect(faultsOf(SEMANTICS, ...semantics)).toEqual([]);
  const modes = ["| F10.1 | a leak | H01 | `F10.1: tells` |", "| F10.5 | a pause | shown | `C081, F10.5: holds` |"];
  expect(faultsOf(FAILURE_MODES, ...modes)).toEqual([]);
});

it.each([
  [PEERS, "| p-limit | a cap | README | `frees a place` |", '"frees a place", but no test of that title passed'],
  [PEERS, "| p-limit | a cap | README | frees the place |", "must end with"],
  [PEERS, "| p-limit | a cap | README | not offered: |", "must end with"],
  [PEERS, "| p-limit | a cap | README | not offered |", "must end with"],
  [PEERS, "| p-limit | a cap | README | differs: it does |", "must end with"],
  [PEERS, "| p-limit | a cap | README | |", "filled columns"],
  [PEERS, "| p-limit | a cap | `frees the place` |", "filled columns"],
  [PEERS, "| p-limit | | README | `frees the place` |", "filled columns"],
  [SEMANTICS, "| Go | a cap | README | `frees the place` |", "filled columns"],
  [SEMANTICS, "| Go | a cap | as there |", "must end with"],
  [FAILURE_MODES, "| F10.1 | a leak | H01 | `F10.2: tells` |", 'begins with "F10.1: "'],
  [FAILURE_MODES, "| F10.1 | a leak | H01 | not offered: why |", "must end with"],
])("refuses, in a table with %o, the row %s", (kind, row, why) => {
  const found = faultsOf(kind, row);
  expect(found).toHaveLength(1);
  expect(found[0]).toContain("x.md:5 ");
  expect(found[0]).toContain(why);
});

it("refuses a row that is there twice, in one file or in two", () => {
  const text = table(SEMANTICS, "| Go | a cap | `frees the place` |");
  const twice = faultsOf(PEERS, ...[1, 2].map(() => "| p-limit | a cap | README | `frees the place` |"));
  expect(twice).toEqual(["x.md:6 repeats p-limit: a cap"]);
  const texts = new Map(["a.md", "b.md"].map((file) => [file, text]));
  expect(faults({ ...SEMANTICS, minRows: 0 }, texts, titles)).toEqual(["b.md:5 repeats Go: a cap"]);
});

it("refuses too few rows, counted over all files", () => {
  const texts = new Map([
    ["a.md", table(SEMANTICS, "| Go | one | `frees the place` |")],
    ["b.md", table(SEMANTICS, "| Go | two | `frees the place` |")],
  ]);
  expect(faults({ ...SEMANTICS, minRows: 2 }, texts, titles)).toEqual([]);
  expect(faults(SEMANTICS, texts, titles)).toEqual(["a.md, b.md: 2 of 250 rows"]);
});

it("names the files that an index doesn't link to", () => {
  expect(unlisted("[queue](queue.md) and [pool](pools.md)", ["docs/queue.md", "docs/pool.md"])).toEqual([
    "docs/pool.md",
  ]);
});
