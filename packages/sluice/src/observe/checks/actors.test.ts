import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { Actor } from "../../actor/actor.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import { enable } from "../enable.ts";

it("F07.3: H18 tells of a message that an actor has been at for long, and how many wait for it", async () => {
  const clock = new VirtualClock();
  const gate = Promise.withResolvers<void>();
  const actor = new Actor<string>(8, () => () => gate.promise, { name: "blocked", clock });
  for (const message of ["a", "b", "c"]) actor.tryTell(message);
  await turn();
  const reports = (): unknown[] =>
    doctor({ clock }).filter(({ id, subject }) => id === "H18" && subject.name === "blocked");
  await clock.advance(4_999);
  expect(reports()).toEqual([]);
  await clock.advance(1);
  expect(reports()).toMatchObject([
    {
      failureModes: ["F07.3"],
      evidence: 'actor "blocked" has been at one message for 5 s, with 2 more in line',
      facts: { ranMs: 5_000, waiting: 2 },
    },
  ]);
  gate.resolve();
  await actor.drain();
  expect(reports()).toEqual([]);
});

it("H07 tells of an actor at which everybody waits, which no profile of locks shows", async () => {
  const clock = new VirtualClock();
  const actor = new Actor<string>(8, () => () => new Promise(() => {}), { name: "bottleneck", clock });
  actor.tryTell("a");
  await turn();
  actor.tryTell("b");
  await clock.advance(1_000);
  const found = doctor({ clock }).filter(({ id, subject }) => id === "H07" && subject.name === "bottleneck");
  expect(found).toMatchObject([{ facts: { limit: 1, waiting: 1, ageMs: 1_000 } }]);
});

it("F07.2, F08.1: H03 tells of actors that ask in a ring and were not stopped", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const options = { clock, findCycles: false };
  const a: Actor<string> = new Actor<string>(8, () => () => turn().then(() => b.ask("a")), {
    ...options,
    name: "ask-a",
  });
  const b: Actor<string> = new Actor<string>(8, () => () => turn().then(() => c.ask("b")), {
    ...options,
    name: "ask-b",
  });
  const c: Actor<string> = new Actor<string>(8, () => () => turn().then(() => a.ask("c")), {
    ...options,
    name: "ask-c",
  });
  a.tryTell("go");
  for (let step = 0; step < 8; step += 1) await turn();
  await clock.advance(5_000);
  const rings = doctor({ clock }).filter(({ id }) => id === "H03");
  expect(rings).toHaveLength(1);
  expect(String(rings[0]?.facts["path"]).split(" → ").toSorted()).toEqual([
    'actor "ask-a"',
    'actor "ask-b"',
    'actor "ask-c"',
  ]);
});

it("finds no ring where an actor waits for one that is only slow", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const gate = Promise.withResolvers<void>();
  const slow = new Actor<string>(8, () => () => gate.promise, { clock, name: "slow" });
  const other = new Actor<string>(8, () => () => slow.ask("a"), { clock, name: "other" });
  const asked = other.ask("go");
  await turn();
  await clock.advance(60_000);
  expect(doctor({ clock }).filter(({ id }) => id === "H03")).toEqual([]);
  gate.resolve();
  await asked;
});
