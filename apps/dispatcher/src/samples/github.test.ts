import { beforeAll, expect, it } from "vitest";
import type { Event } from "../model.ts";
import { githubEvents } from "./github.ts";

let events: readonly Event[] = [];

beforeAll(async () => {
  events = await Array.fromAsync(githubEvents());
});

it("has every payload of every folder: 726, of which 643 are distinct", () => {
  expect(events.length).toBe(726);
  expect(new Set(events.map(({ source, id }) => `${source} ${id}`)).size).toBe(643);
  expect(new Set(events.map(({ source }) => source)).size).toBe(6);
});

it("gives one payload in two folders two ids, and the same ids in every run", async () => {
  const again = await Array.fromAsync(githubEvents());
  expect(again.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
  const folders = new Map<string, Set<string>>();
  for (const { id, source } of events) folders.set(id, (folders.get(id) ?? new Set()).add(source));
  expect([...folders.values()].every((sources) => sources.size === 1)).toBe(true);
});

it("names the type after the event and its action", () => {
  const types = new Set(events.map(({ type }) => type));
  expect([...types].filter((type) => !/^com\.github\.[a-z0-9_]+(\.[a-z_-]+)?$/.test(type))).toEqual([]);
  for (const type of ["com.github.push", "com.github.issues.opened", "com.github.repository_dispatch.on-demand-test"]) {
    expect(types).toContain(type);
  }
});

it("names the repository as the subject where there is one", () => {
  expect(events.filter(({ subject }) => subject === undefined).length).toBeGreaterThan(0);
  expect(events.filter(({ subject }) => subject === "Codertocat/Hello-World").length).toBeGreaterThan(400);
});
