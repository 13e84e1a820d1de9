import { expect, it, vi } from "vitest";
import { turn } from "../testing/turn.ts";
import { AsyncContext, isContextFree } from "./async-context.ts";

it("follows a call through what it awaits, and no other call", async () => {
  const context = new AsyncContext<string>();
  const seen = async (): Promise<unknown[]> => {
    const before = context.get();
    await turn();
    return [before, context.get()];
  };
  const runs = [seen(), context.run("a", seen), context.run("b", () => context.run("c", seen)), seen()];
  expect(await Promise.all(runs)).toEqual([
    [undefined, undefined],
    ["a", "a"],
    ["c", "c"],
    [undefined, undefined],
  ]);
});

it("ends with the promise reaction in which it was entered", async () => {
  const context = new AsyncContext<string>();
  const inside = Promise.resolve().then(async () => {
    context.enter("inside");
    await turn();
    return context.get();
  });
  await Promise.resolve();
  const outside = context.get();
  expect([await inside, outside, context.get()]).toEqual(["inside", undefined, undefined]);
});

it("costs nothing from Node 24 on", () => {
  expect(isContextFree()).toBe(Number.parseInt(process.versions.node, 10) >= 24);
});

it("only calls where the runtime has no such thing", () => {
  vi.stubGlobal("process", undefined);
  try {
    const context = new AsyncContext<string>();
    expect(context.run("a", () => [context.get(), 7])).toEqual([undefined, 7]);
    context.enter("a");
    expect([context.get(), isContextFree()]).toEqual([undefined, false]);
  } finally {
    vi.unstubAllGlobals();
  }
});
