import { abortCases, type AbortSubject, VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { type Rest, RestWaits } from "./rest-waits.ts";

for (const rest of ["idle", "drained"] as const) {
  const subject: AbortSubject = {
    name: `RestWaits.wait("${rest}")`,
    open(clock) {
      let now: Rest = "busy";
      const waits = new RestWaits(clock, () => now);
      return {
        call: (options) => waits.wait(rest, options),
        satisfy() {
          now = rest;
          waits.tell();
        },
        state: () => ({ size: waits.size }),
      };
    },
  };
  for (const { title, run } of abortCases(subject)) it(title, run);
}

it("lets who waits for idle go when it is drained too, and who waits for drained only then", async () => {
  let now: Rest = "busy";
  const waits = new RestWaits(new VirtualClock(), () => now);
  const log: string[] = [];
  const idle = waits.wait("idle", {}).then(() => log.push("idle"));
  const drained = waits.wait("drained", {}).then(() => log.push("drained"));
  waits.tell();
  expect(waits.size).toBe(2);
  now = "idle";
  waits.tell();
  await idle;
  expect([log, waits.wantsDrained]).toEqual([["idle"], true]);
  now = "drained";
  waits.tell();
  await drained;
  expect([log, waits.wantsDrained]).toEqual([["idle", "drained"], false]);
});
