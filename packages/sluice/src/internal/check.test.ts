import { expect, it } from "vitest";
import {
  checkFunction,
  checkInteger,
  checkMs,
  checkNumber,
  checkOneOf,
  checkPriority,
  checkShare,
  checkSignal,
  checkString,
  checkWait,
  checkWeight,
} from "./check.ts";

const MAX = Number.MAX_SAFE_INTEGER;

it.each<[string, () => unknown, unknown]>([
  ["an integer at its least", () => checkInteger("a", 1, { min: 1 }), 1],
  ["the greatest integer", () => checkInteger("a", MAX, { min: 1 }), MAX],
  ["no bound", () => checkInteger("a", Infinity, { min: 1, infinity: true }), Infinity],
  ["a duration of nothing", () => checkMs("a", 0), 0],
  ["a part of a millisecond", () => checkMs("a", 0.5), 0.5],
  ["an endless duration", () => checkMs("a", Infinity), Infinity],
  ["a number", () => checkNumber("a", -1.5, { min: -2 }), -1.5],
  ["the whole", () => checkShare("a", 1), 1],
  ["a priority below 0", () => checkPriority(-0.5), -0.5],
  ["as much as there is", () => checkWeight(3, 3), 3],
  ["a choice", () => checkOneOf("a", "y", ["x", "y"]), "y"],
  ["no signal", () => checkSignal(undefined), undefined],
  ["no options", () => checkWait({}), undefined],
  ["a string, also an empty one", () => checkString("a", ""), undefined],
  ["a function", () => checkFunction("a", Math.abs), Math.abs],
])("takes %s", (_, check, value) => {
  expect(check()).toBe(value);
});

it.each<[string, () => unknown]>([
  ["a must be an integer >= 1, got 0", () => checkInteger("a", 0, { min: 1 })],
  ["a must be an integer >= 1, got 1.5", () => checkInteger("a", 1.5, { min: 1 })],
  ["a must be an integer >= 1, got Infinity", () => checkInteger("a", Infinity, { min: 1 })],
  [`a must be an integer >= 1, got ${MAX + 1}`, () => checkInteger("a", MAX + 1, { min: 1 })],
  ["a must be an integer >= 1 or Infinity, got NaN", () => checkInteger("a", NaN, { min: 1, infinity: true })],
  ["a must be >= 0, got -1", () => checkMs("a", -1)],
  ["a must be >= 0, got NaN", () => checkMs("a", NaN)],
  ["a must be finite and >= 1, got Infinity", () => checkMs("a", Infinity, { min: 1 })],
  ["a must be finite and >= 0, got -0.5", () => checkNumber("a", -0.5, { min: 0 })],
  ["a must be <= 1, got 1.1", () => checkShare("a", 1.1)],
  ["a must be finite and >= 0, got -0.1", () => checkShare("a", -0.1)],
  ["priority must be finite, got -Infinity", () => checkPriority(-Infinity)],
  ["weight must be an integer from 1 to the limit of 3, got 4", () => checkWeight(4, 3)],
  ["weight must be an integer from 1 to the limit of 3, got 0", () => checkWeight(0, 3)],
  ["a must be one of x, y, got z", () => checkOneOf<string>("a", "z", ["x", "y"])],
  ["a must be one of x, y, got Symbol(x)", () => checkOneOf<string>("a", Symbol("x") as never, ["x", "y"])],
])("RangeError: %s", (message, check) => {
  expect(check).toThrow(new RangeError(message));
});

it.each<[string, () => unknown]>([
  ["a must be a number, got string", () => checkInteger("a", "1" as never, { min: 1 })],
  ["a must be a number, got null", () => checkNumber("a", null as never, { min: 0 })],
  ["a must be a number, got bigint", () => checkMs("a", 1n as never)],
  ["priority must be a number, got object", () => checkPriority([] as never)],
  ["signal must be an AbortSignal, got null", () => checkSignal(null as never)],
  ["signal must be an AbortSignal, got object", () => checkSignal(new EventTarget() as never)],
  ["signal must be an AbortSignal, got boolean", () => checkWait({ signal: true as never })],
  ["timeoutMs must be a number, got string", () => checkWait({ timeoutMs: "1" as never })],
  ["a must be a function, got undefined", () => checkFunction("a", undefined)],
  ["a must be a string, got number", () => checkString("a", 1)],
])("TypeError: %s", (message, check) => {
  expect(check).toThrow(new TypeError(message));
});

it("throws the reason of a signal that has aborted, but only when all else is in order", () => {
  const signal = AbortSignal.abort("changed my mind");
  expect(catchFrom(() => checkWait({ signal }))).toBe("changed my mind");
  expect(catchFrom(() => checkWait({ signal, timeoutMs: -1 }))).toBeInstanceOf(RangeError);
});

function catchFrom(fn: () => unknown): unknown {
  try {
    return fn();
  } catch (error) {
    return error;
  }
}
