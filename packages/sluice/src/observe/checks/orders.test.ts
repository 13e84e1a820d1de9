import { expect, it } from "vitest";
import { Limiter } from "../../flow/limiter.ts";
import { CircuitBreaker } from "../../resilience/circuit-breaker.ts";
import { compose } from "../../resilience/compose.ts";
import { retry } from "../../resilience/retry.ts";
import { timeout } from "../../resilience/timeout.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import type { Report } from "../report.ts";

function look(name: string): Report[] {
  return doctor({ clock: new VirtualClock() }).filter(
    ({ subject }) => subject.kind === "compose" && subject.name?.includes(name),
  );
}

it("F10.5: H01 tells of a limit that is composed around a retry", () => {
  const policy = compose(new Limiter(4, { name: "printers" }), retry());
  expect(look("printers")).toEqual([
    {
      id: "H01",
      failureModes: ["F10.5"],
      subject: { kind: "compose", name: 'limiter "printers" > retry' },
      evidence:
        'compose "limiter "printers" > retry" has limiter around retry: it keeps its slot while the retry waits for its next attempt',
      facts: { rule: "slot-held-while-waiting", outer: "limiter", inner: "retry" },
      remedy: "put the limit inside the retry",
    },
  ]);
  expect(policy.problems).toHaveLength(1);
});

it("tells of each order under the report that what comes of it would have", () => {
  const same = new Semaphore(1);
  const kept = [
    compose(retry({ name: "twice" }), retry()),
    compose(new CircuitBreaker({ name: "outer breaker" }), retry()),
    compose(new Semaphore(1, { name: "early" }), timeout(10)),
    compose(timeout(10, { name: "short" }), timeout(10)),
    compose(same, same, new Limiter(1, { name: "again" })),
    compose(timeout(10, { name: "right" }), retry(), new CircuitBreaker(), new Limiter(1)),
  ];
  const ids = ["twice", "outer breaker", "early", "short", "again", "right"].map((name) =>
    look(name).map(({ id }) => id),
  );
  expect(ids).toEqual([["H06"], ["H06"], ["H17"], ["H17"], ["H04"], []]);
  expect(kept).toHaveLength(6);
});

it("says nothing of what has no name", () => {
  const policy = compose(new Limiter(4), retry());
  expect(look("limiter > retry")).toEqual([]);
  expect(policy.problems).toHaveLength(1);
});
