import { expect, it } from "vitest";
import { firstDifference, reportName } from "./api.ts";

it("names each report after its entry point", () => {
  const names = ["sluice", "sluice/observe", "@sluice/jobs", "@sluice/jobs/sqlite"].map(reportName);
  expect(names).toEqual(["sluice.api.md", "sluice-observe.api.md", "jobs.api.md", "jobs-sqlite.api.md"]);
});

it("tells the first line in which two reports differ, also where one goes on", () => {
  expect(firstDifference("a\nb\n", "a\nb\n")).toBeUndefined();
  expect(firstDifference("a\nb\nc", "a\nB\nC")).toBe('line 2 was "b", is "B"');
  expect(firstDifference("a", "a\nb")).toBe('line 2 was "", is "b"');
  expect(firstDifference("a\nb", "a")).toBe('line 2 was "b", is ""');
});
