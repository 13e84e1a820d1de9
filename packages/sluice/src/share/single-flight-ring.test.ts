import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { SelfWaitError } from "../errors.ts";
import { type SingleFlight, singleFlight } from "./single-flight.ts";

type Load = (flights: SingleFlight<string, string>) => Promise<string>;

function flightsOf(loads: Readonly<Record<string, Load>>): SingleFlight<string, string> {
  const flights: SingleFlight<string, string> = singleFlight((key: string) => loads[key]?.(flights) ?? key);
  return flights;
}

it("refuses what would wait for a load that has joined, as for the one that began it", async () => {
  const gate = Promise.withResolvers<void>();
  const flights = flightsOf({
    began: (all) => all.load("a"),
    joined: (all) => all.load("a"),
    a: (all) => gate.promise.then(() => all.load("joined")),
  });
  const loads = [flights.load("began"), flights.load("joined")];
  gate.resolve();
  for (const load of loads) await expect(load).rejects.toBeInstanceOf(SelfWaitError);
});

it("lets what a load has left behind wait for whoever waited for that load", async () => {
  const [ended, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let behind: Promise<string> | undefined;
  const flights = flightsOf({
    slow: async (all) => `${await all.load("quick")}, ${await last.promise.then(() => "slow")}`,
    quick(all) {
      void ended.promise.then(() => (behind = all.load("slow")));
      return Promise.resolve("quick");
    },
  });
  const slow = flights.load("slow");
  await turn();
  ended.resolve();
  await turn();
  last.resolve();
  expect([await slow, await behind]).toEqual(["quick, slow", "quick, slow"]);
});

it("lets a load wait for one that has waited for it and left", async () => {
  const [left, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const leave = new AbortController();
  const flights = flightsOf({
    a: (all) => left.promise.then(() => all.load("b")),
    b: async (all) => {
      await all.load("a", { signal: leave.signal }).catch(() => {});
      await last.promise;
      return "b";
    },
  });
  const loads = [flights.load("a"), flights.load("b")];
  leave.abort();
  await turn();
  left.resolve();
  await turn();
  last.resolve();
  expect(await Promise.all(loads)).toEqual(["b", "b"]);
});
