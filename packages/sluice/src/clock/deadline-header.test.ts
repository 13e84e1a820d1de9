import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { DEADLINE_HEADER, deadlineFromHeaders, deadlineHeaders } from "./deadline-header.ts";
import { Deadline } from "./deadline.ts";

it("J48: takes what is left across a border, shrunk by what it took to get there and back", async () => {
  const [here, there] = [new VirtualClock(), new VirtualClock()];
  await there.advance(12_345); // whose instants mean nothing here
  const request = Deadline.after(10_000, { clock: here });
  await here.advance(7_000.25);
  const headers = deadlineHeaders(request, { reserveMs: 100 });
  expect(headers).toEqual({ "deadline-ms": "2899" });
  const callee = deadlineFromHeaders(new Headers(headers), { clock: there });
  expect(callee.leftMs).toBe(2_899);
  const { signal } = callee;
  await there.advance(2_899);
  expect([callee.expired, signal.aborted]).toEqual([true, true]);
});

it("sends no header for what never comes, and 0 for what has come", () => {
  const clock = new VirtualClock();
  expect(deadlineHeaders(Deadline.after(Infinity, { clock }))).toEqual({});
  expect(deadlineHeaders(Deadline.after(0, { clock }))).toEqual({ "deadline-ms": "0" });
  expect(deadlineHeaders(Deadline.after(50, { clock }), { reserveMs: 80 })).toEqual({ "deadline-ms": "0" });
});

it.each([
  ["250", 250],
  [" 250 ", 250],
  ["249.75", 249.75],
  ["0", 0],
  ["-1", 0],
  ["-99999999999999999999999", 0],
  ["999999999", 60_000],
  ["9".repeat(400), 60_000],
  ["", 60_000],
  ["soon", 60_000],
  ["250ms", 60_000],
  ["1e3", 60_000],
  ["0x10", 60_000],
  ["+5", 60_000],
  ["Infinity", 60_000],
  ["NaN", 60_000],
  ["100, 200", 60_000],
  ["1.2.3", 60_000],
])("reads %j as %d ms, of 60,000 at most", (value, expectedMs) => {
  const options = { maxMs: 60_000, clock: new VirtualClock() };
  expect(deadlineFromHeaders({ [DEADLINE_HEADER]: value }, options).leftMs).toBe(expectedMs);
});

it("sets none without a header, with one that came twice as a list, or without maxMs for one that says nothing", () => {
  const clock = new VirtualClock();
  for (const headers of [{}, new Headers(), { [DEADLINE_HEADER]: ["1", "2"] }, { [DEADLINE_HEADER]: "soon" }])
    expect(deadlineFromHeaders(headers, { clock }).leftMs).toBe(Infinity);
});

it("ends no later than a deadline of its own side, and with its signal", () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const within = Deadline.after(100, { clock });
  const deadline = deadlineFromHeaders({ [DEADLINE_HEADER]: "5000" }, { within, signal: call.signal, clock });
  expect(deadline.leftMs).toBe(100);
  const { signal } = deadline;
  call.abort("left");
  expect(signal.reason).toBe("left");
  deadline.close();
});

it("never throws for what a stranger sends, and never gives more than maxMs", () => {
  const clock = new VirtualClock();
  const values = fc.oneof(fc.string(), fc.double().map(String), fc.bigInt().map(String), fc.constant(undefined));
  const plans = fc.property(values, fc.integer({ min: 0, max: 1e6 }), (value, maxMs) => {
    const { leftMs } = deadlineFromHeaders({ [DEADLINE_HEADER]: value }, { maxMs, clock });
    expect(leftMs >= 0 && leftMs <= maxMs).toBe(true);
  });
  fc.assert(plans, { numRuns: 1_000 });
});

it("refuses bad options", () => {
  const clock = new VirtualClock();
  expect(() => deadlineFromHeaders({}, { maxMs: -1 })).toThrow(RangeError);
  expect(() => deadlineHeaders({} as Deadline)).toThrow(TypeError);
  expect(() => deadlineHeaders(Deadline.after(1, { clock }), { reserveMs: Infinity })).toThrow(RangeError);
});
