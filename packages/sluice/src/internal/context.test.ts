import { setImmediate as turn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { asyncContext, isContextFree } from "./context.ts";

it("follows who entered it, and nobody else", async () => {
  const context = asyncContext<string>();
  const seen: (string | undefined)[] = [];
  const look = async (): Promise<void> => {
    seen.push(context?.getStore());
    await turn();
    seen.push(context?.getStore());
  };
  await Promise.all([context?.run("a", look), context?.run("b", look), look()]);
  expect(seen).toEqual(["a", "b", undefined, "a", "b", undefined]);
});

it("ends with the promise reaction in which it was entered", async () => {
  const context = asyncContext<string>();
  const inside = Promise.resolve().then(async () => {
    context?.enterWith("inside");
    await turn();
    return context?.getStore();
  });
  await Promise.resolve();
  const outside = context?.getStore();
  expect([await inside, outside, context?.getStore()]).toEqual(["inside", undefined, undefined]);
});

it("costs nothing from Node 24 on, and is not to be had in a runtime without it", async () => {
  expect(isContextFree()).toBe(Number.parseInt(process.versions.node, 10) >= 24);
  vi.stubGlobal("process", undefined);
  vi.resetModules();
  const elsewhere = await import("./context.ts");
  vi.unstubAllGlobals();
  expect([elsewhere.asyncContext(), elsewhere.isContextFree()]).toEqual([undefined, false]);
});
