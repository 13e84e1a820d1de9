import { expect, it } from "vitest";
import { RunCounts } from "../dispatch/run-counts.ts";
import { summaryOf, summaryText } from "./summary.ts";

function someCounts(): RunCounts {
  const counts = new RunCounts();
  counts.events = 1_200;
  counts.duplicates = 7;
  counts.retried = 3;
  const settle = (channel: string, to: "delivered" | "deferred" | "dropped" | "dead", reason?: string): void =>
    counts.moved(channel, { from: undefined, to, reason });
  for (let i = 0; i < 7; i += 1) settle(i < 4 ? "email" : "webhook", "delivered");
  settle("email", "deferred", "over the limit of 5 in 60 s");
  settle("email", "dropped", "over the limit of 5 in 60 s");
  settle("webhook", "dead", "410 gone");
  return counts;
}

it("adds up to the notifications", () => {
  expect(summaryOf(someCounts(), 1_500.4)).toEqual({
    events: 1_200,
    duplicates: 7,
    notifications: 10,
    delivered: 7,
    deferred: 1,
    dropped: 1,
    dead: 1,
    retried: 3,
    durationMs: 1_500,
  });
});

it("tells people how much went where, and why not", () => {
  expect(summaryText(someCounts(), 1_500)).toBe(
    [
      "events         1,200  and 7 that were known already",
      "notifications     10  in 1.5 s, 7 a second",
      "  delivered        7  70.0 %: email 4, webhook 3",
      "  deferred         1  10.0 %: email 1",
      "  dropped          1  10.0 %: 1 over the limit of 5 in 60 s",
      "  dead             1  10.0 %: webhook 1",
      "retried            3",
    ].join("\n"),
  );
});

it("has nothing to say where nothing happened", () => {
  expect(summaryText(new RunCounts(), 0)).toBe(
    [
      "events         0",
      "notifications  0  in 0 ms, 0 a second",
      "  delivered    0",
      "  deferred     0",
      "  dropped      0",
      "  dead         0",
      "retried        0",
    ].join("\n"),
  );
});
