import { expect, it, vi } from "vitest";
import { turn } from "../testing/turn.ts";
import { AsyncContext } from "./async-context.ts";

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

it("only calls where the runtime has no such thing", () => {
  vi.stubGlobal("process", undefined);
  try {
    const context = new AsyncContext<string>();
    expect(context.run("a", () => [context.get(), 7])).toEqual([undefined, 7]);
  } finally {
    vi.unstubAllGlobals();
  }
});
