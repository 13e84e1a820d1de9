import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { blocksOf } from "./documents.ts";

const PAGE = "docs/which-one.md";
const text = readFileSync(PAGE, "utf8");
const entries = text.split(/^### /m).slice(1);

it("answers each of the 32 ways to ask once", () => {
  const ids = entries.flatMap((entry) => /^Q\d+(?=:)/.exec(entry)?.[0] ?? []); // others have no id
  const all = Array.from({ length: 32 }, (_, index) => `Q${String(index + 1).padStart(2, "0")}`);
  expect(ids.toSorted()).toEqual(all);
});

it.each(entries.map((entry) => [entry.split("\n")[0] ?? "", entry]))(
  "says in code what to do, or that it comes later: %s",
  (_, entry) => {
    const lines = blocksOf(PAGE, entry).filter(({ mark }) => mark === "line");
    const isLater = entry.includes("comes later") || entry.includes("come later");
    expect(lines.length > 0 || isLater).toBe(true);
    expect(entry).toMatch(/absorbs? /); // the pressure that it takes off
  },
);

it("promises for later only what is not there yet", async () => {
  const exported = Object.keys(await import("sluice"));
  const withoutCode = entries.filter((entry) => !entry.includes("```ts line")).join("\n");
  const later = [...withoutCode.matchAll(/\*\*`(\w+)`/g)];
  expect(later.map(([, name]) => name).filter((name) => exported.includes(name ?? ""))).toEqual([]);
});
