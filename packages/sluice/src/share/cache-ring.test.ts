import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { SelfWaitError } from "../errors.ts";
import { isContextFree } from "../internal/async-context.ts";
import { Cache } from "./cache.ts";
import { singleFlight, type SingleFlight } from "./single-flight.ts";

describe.runIf(isContextFree())("where the runtime knows which load runs", () => {
  it("refuses a load that asks for its own key after it has waited, itself or by way of others, and works on", async () => {
    const next: Readonly<Record<string, string>> = { self: "self", a: "b", b: "c", c: "a", fine: "end" };
    const cache: Cache<string, string> = new Cache(
      async (key: string) => {
        await turn();
        const other = next[key];
        return other === undefined ? key : `${key} ${await cache.load(other)}`;
      },
      { maxEntries: 10 },
    );
    for (const key of ["self", "a", "c"]) await expect(cache.load(key)).rejects.toBeInstanceOf(SelfWaitError);
    await expect(cache.load("fine")).resolves.toBe("fine end");
    expect(cache.stats()).toMatchObject({ loading: 0, entries: 2 });
  });

  it("knows of every load, once it has seen that loads ask for others", async () => {
    const cache: Cache<number, number> = new Cache(
      async (key: number) => {
        await turn();
        if (key === 0) return cache.load(1);
        return key === 201 ? cache.load(201) : key;
      },
      { maxEntries: 1_000 },
    );
    for (let key = 0; key < 200; key += 1) await cache.load(key);
    await expect(cache.load(201)).rejects.toBeInstanceOf(SelfWaitError);
  });

  it("finds a ring that leads through a flight", async () => {
    const flights: SingleFlight<string, string> = singleFlight(async (key: string) => {
      await turn();
      return cache.load(key);
    });
    const cache: Cache<string, string> = new Cache((key: string) => flights.load(key), { maxEntries: 10 });
    await expect(cache.load("a")).rejects.toBeInstanceOf(SelfWaitError);
  });

  it("takes no load for its own that has left, nor one that is over", async () => {
    const left = new AbortController();
    const cache: Cache<string, string> = new Cache(
      async (key: string) => {
        await turn();
        if (key === "b") {
          await turn();
          await turn();
          return cache.load("a");
        }
        await cache.load("b", { signal: left.signal }).catch(() => {});
        await turn();
        await turn();
        await turn();
        return key;
      },
      { maxEntries: 10 },
    );
    const a = cache.load("a");
    const b = cache.load("b"); // somebody else wants it as well
    await turn();
    left.abort();
    await expect(Promise.all([a, b])).resolves.toEqual(["a", "a"]);
  });
});
