import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { isMove, MOVES, STATES } from "./states.ts";

it("is drawn in the documents as it is", () => {
  const drawing = readFileSync(new URL("../../../docs/jobs-states.md", import.meta.url), "utf8");
  const arrows = [...drawing.matchAll(/^ {2}(\w+) --> (\w+): (.+)$/gm)];
  const drawn = arrows.flatMap(([, from, to, causes = ""]) => causes.split(", ").map((by) => `${from} ${to} ${by}`));
  expect(drawn.toSorted()).toEqual(MOVES.map(({ from, to, by }) => `${from} ${to} ${by}`).toSorted());
});

it("has no move twice, and none from a state to itself", () => {
  expect(new Set(MOVES.map((move) => JSON.stringify(move))).size).toBe(MOVES.length);
  expect(MOVES.filter(({ from, to }) => from === to)).toEqual([]);
});

it("lets a job end in four states, and leave all of them but success", () => {
  const ends = STATES.filter((state) => MOVES.every(({ from, by }) => from !== state || by === "redrive"));
  expect(ends).toEqual(["succeeded", "dead", "cancelled", "quarantined"]);
  expect(ends.filter((state) => isMove(state, "ready", "redrive"))).toEqual(["dead", "cancelled", "quarantined"]);
});

it("lets only a claim make a job run", () => {
  expect(MOVES.filter(({ to }) => to === "running")).toEqual([{ from: "ready", to: "running", by: "claim" }]);
});

it("tells moves apart by their cause", () => {
  expect([isMove("ready", "running", "claim"), isMove("ready", "running", "time")]).toEqual([true, false]);
});
