import { seededRandom } from "sluice/testing";
import { expect, it } from "vitest";
import { checkMisbehaviour, drawBehaviour, parseMisbehaviour } from "./misbehaviour.ts";

it("reads faults with their shares, and the delay of slow answers", () => {
  expect(parseMisbehaviour("slow=0.1:3000, 5xx=0.05,lose=.02")).toEqual({
    slow: 0.1,
    slowMs: 3000,
    "5xx": 0.05,
    lose: 0.02,
  });
  expect(parseMisbehaviour("slow=1")).toEqual({ slow: 1 });
  expect(parseMisbehaviour("")).toEqual({});
  expect(parseMisbehaviour("4xx=0.4,5xx=0.3,drop=0.2,hang=0.1")).toMatchObject({ hang: 0.1 }); // 1, but for rounding
});

it.each([
  ["slow", 'misbehave must be like slow=0.1:2000,5xx=0.05, got "slow"'],
  ["slow=-0.1", 'misbehave must be like slow=0.1:2000,5xx=0.05, got "slow=-0.1"'],
  ["slow=0.1:2s", 'misbehave must be like slow=0.1:2000,5xx=0.05, got "slow=0.1:2s"'],
  ["3xx=0.1", 'misbehave must name slow, 4xx, 5xx, drop, lose, hang, got "3xx"'],
  ["drop=1.5", "misbehave drop must be from 0 to 1, got 1.5"],
  ["drop=1..2", "misbehave drop must be from 0 to 1, got NaN"],
  ["drop=0.1:5", 'misbehave takes a delay for slow alone, got "drop=0.1:5"'],
  ["drop=0.1,drop=0.2", 'misbehave must name each fault once, got "drop" again'],
  ["drop=0.6,hang=0.5", "misbehave shares must add up to at most 1, got 1.1"],
])("refuses %s", (text, why) => {
  expect(() => parseMisbehaviour(text)).toThrow(new RangeError(why));
});

it("refuses a delay that is none", () => {
  expect(() => checkMisbehaviour({ slow: 1, slowMs: 0.5 })).toThrow(
    "misbehave slowMs must be an integer >= 0, got 0.5",
  );
});

it("draws each fault as often as its share says, and the same ones for the same seed", () => {
  const shares = { slow: 0.1, "4xx": 0.05, "5xx": 0.2, drop: 0.02, lose: 0.03, hang: 0.1 };
  const draw = (seed: number): readonly string[] =>
    Array.from({ length: 10_000 }, drawBehaviour(shares, seededRandom(seed)));
  const drawn = draw(7);
  for (const [fault, share] of Object.entries({ ...shares, ok: 0.5 })) {
    const found = drawn.filter((each) => each === fault).length / drawn.length;
    expect(Math.abs(found - share)).toBeLessThan(0.015); // three standard deviations
  }
  expect(draw(7)).toEqual(drawn);
  expect(draw(8)).not.toEqual(drawn);
});

it("knows no chance where a share is 0 or 1", () => {
  expect(drawBehaviour({}, () => 0)()).toBe("ok");
  expect(drawBehaviour({ hang: 1 }, () => 1 - Number.EPSILON)()).toBe("hang");
  expect(drawBehaviour({ slow: 0, drop: 1 }, () => 0)()).toBe("drop");
});
