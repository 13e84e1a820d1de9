import { expect, it } from "vitest";
import { OverloadedError } from "../errors.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import type { Criticality } from "./adaptive-limiter-options.ts";
import { shedByCriticality } from "./shed.ts";

const criticalities = ["critical", "normal", "sheddable"] as const;

it("turns away the sheddable first, then the normal, and the critical only if told to", () => {
  const shed = shedByCriticality();
  const kept = (load: number): Criticality[] => criticalities.filter((criticality) => !shed(criticality, load));
  expect(kept(0.79)).toEqual(["critical", "normal", "sheddable"]);
  expect(kept(0.8)).toEqual(["critical", "normal"]);
  expect(kept(1.99)).toEqual(["critical", "normal"]);
  expect(kept(2)).toEqual(["critical"]);
  expect(kept(1_000)).toEqual(["critical"]);
  expect(shedByCriticality({ critical: 3 })("critical", 3)).toBe(true);
});

it("keeps room for the critical: of a crowd the sheddable find none left once most is taken", async () => {
  const limiter = new AdaptiveLimiter(() => ({ next: (limit) => limit }), {
    initialConcurrency: 10,
    shed: shedByCriticality(),
  });
  const refused: Record<Criticality, number> = { critical: 0, normal: 0, sheddable: 0 };
  const crowd = criticalities.toReversed().flatMap((criticality) => Array.from({ length: 10 }, () => criticality));
  for (const criticality of crowd) {
    limiter
      .run(() => new Promise(() => {}), { criticality })
      .catch((error: unknown) => (refused[criticality] += Number(error instanceof OverloadedError)));
  }
  await Promise.resolve();
  await Promise.resolve();
  expect(limiter.stats()).toMatchObject({ running: 10, waiting: 18, shed: 2 });
  expect(refused).toEqual({ critical: 0, normal: 0, sheddable: 2 });
});

it.each([
  [{ sheddable: -1 }, "sheddable must be >= 0, got -1"],
  [{ sheddable: 3 }, "normal must be >= 3, got 2"],
  [{ critical: 1 }, "critical must be >= 2, got 1"],
])("refuses %j", (options, why) => {
  expect(() => shedByCriticality(options)).toThrow(why);
});
