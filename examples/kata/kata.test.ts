import { describe, expect, it } from "vitest";
import { examineAll } from "./kata.ts";

const examined = await examineAll();

describe.each(examined)("$name", ({ task, checks, solution, sluice, starter, wrong }) => {
  it("has a task, and checks of which each has a title of its own", () => {
    expect(task).toMatch(/^Write /);
    expect(new Set(checks).size).toBe(checks.length);
  });

  it("is solved by its solution", () => expect(solution.fails).toEqual([]));

  it("is solved by sluice", () => expect(sluice.fails).toEqual([]));

  it("begins with something that doesn't solve it", () => expect(starter.fails).not.toEqual([]));

  it.each(wrong)("is not solved where $title", ({ fails }) => expect(fails).not.toEqual([]));

  it("has no check that all wrong versions pass", () => {
    const failing = new Set([starter, ...wrong].flatMap(({ fails }) => fails));
    expect(checks.filter((check) => !failing.has(check))).toEqual([]);
  });
});
