import { expect, it } from "vitest";
import { Limiter } from "../../flow/limiter.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { declareDependency } from "../dependency.ts";
import { doctor } from "../doctor.ts";
import type { Report } from "../report.ts";

function look(name: string): Report[] {
  return doctor({ clock: new VirtualClock() }).filter(({ id, subject }) => id === "H13" && subject.name === name);
}

it("F10.4: H13 adds up the limits before one dependency, and all processes that have them", () => {
  declareDependency("orders-db", { capacity: 100 });
  const kept = [
    new Semaphore(60, { name: "reports", dependency: "orders-db" }),
    new Limiter(40, { name: "checkout", dependency: "orders-db" }),
    new Semaphore(500, { name: "mail", dependency: "mail-api" }),
  ];
  expect(look("orders-db")).toEqual([]);
  declareDependency("orders-db", { capacity: 100, replicas: 10 });
  expect(look("orders-db")).toMatchObject([
    {
      id: "H13",
      failureModes: ["F10.4"],
      subject: { kind: "dependency", name: "orders-db" },
      evidence:
        'dependency "orders-db" can take 100 at once, but its limits let 1000 through: semaphore "reports" 60, limiter "checkout" 40, times 10 processes',
      facts: { capacity: 100, sum: 1_000, replicas: 10, limits: 2 },
    },
  ]);
  declareDependency("orders-db", { capacity: 99 });
  expect(look("orders-db")).toMatchObject([{ facts: { capacity: 99, sum: 100, replicas: 1 } }]);
  expect(kept).toHaveLength(3);
});

it("goes by the limit of now", () => {
  declareDependency("resized-db", { capacity: 10 });
  const sem = new Semaphore(10, { name: "resized", dependency: "resized-db" });
  sem.resize(11);
  expect(look("resized-db")).toHaveLength(1);
  sem.resize(10);
  expect(look("resized-db")).toEqual([]);
});

it.each([
  [{ capacity: 0 }, "capacity must be an integer >= 1, got 0"],
  [{ capacity: 1, replicas: 1.5 }, "replicas must be an integer >= 1, got 1.5"],
])("refuses to believe in %j", (options, why) => {
  expect(() => declareDependency("x", options)).toThrow(why);
});

it("refuses a dependency whose name is no string", () => {
  expect(() => declareDependency(7 as never, { capacity: 1 })).toThrow("name must be a string, got number");
});
