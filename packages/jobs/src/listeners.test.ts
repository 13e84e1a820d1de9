import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { Listeners } from "./listeners.ts";

it("tells every listener once of each queue, until it has stopped", () => {
  const listeners = new Listeners();
  const heard: string[] = [];
  const hear = (queue: string): void => void heard.push(queue);
  const stop = listeners.add(hear);
  const stopAgain = listeners.add(hear);
  listeners.tell(["a", "b", "a"]);
  expect(heard).toEqual(["a", "a", "b", "b"]);
  stop();
  stop();
  listeners.tell(["c"]);
  expect(heard.slice(4)).toEqual(["c"]);
  stopAgain();
  listeners.tell(["d"]);
  expect(heard.length).toBe(5);
});

it("goes on after a listener that throws, whose error is an unhandled rejection", async () => {
  const own = process.listeners("unhandledRejection");
  const seen: unknown[] = [];
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => seen.push(error));
  try {
    const listeners = new Listeners();
    const broken = new Error("broken");
    const heard: string[] = [];
    listeners.add(() => {
      throw broken;
    });
    listeners.add((queue) => void heard.push(queue));
    listeners.tell(["a"]);
    await turn();
    expect([heard, seen]).toEqual([["a"], [broken]]);
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of own) process.on("unhandledRejection", listener);
  }
});
