import { expect, it } from "vitest";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { Emitter } from "./emitter.ts";

it("tells each listener in the order of joining, one function as often as it was added", () => {
  const emitter = new Emitter<number>();
  const log: string[] = [];
  const twice = (event: number): unknown => log.push(`a${event}`);
  const stop = emitter.add(twice);
  emitter.add((event) => log.push(`b${event}`));
  emitter.add(twice);
  emitter.emit(1);
  stop();
  stop();
  emitter.emit(2);
  expect(log).toEqual(["a1", "b1", "a1", "b2", "a2"]);
  expect(emitter.size).toBe(2);
});

it("tells who is on the list when it is their turn, and was when it began", () => {
  const emitter = new Emitter<void>();
  const log: string[] = [];
  const stops: (() => void)[] = [];
  emitter.add(() => {
    for (const stop of stops) stop();
    emitter.add(() => log.push("newcomer"));
  });
  stops.push(emitter.add(() => log.push("last")));
  emitter.emit();
  expect(log).toEqual([]);
});

it("lets the error of a listener harm nobody, and hides it from nobody", async () => {
  const emitter = new Emitter<number>();
  const failure = new Error("broken listener");
  const heard: number[] = [];
  emitter.add(() => {
    throw failure;
  });
  emitter.add((event) => heard.push(event));
  const unhandled = await unhandledIn(() => Promise.resolve(emitter.emit(7)));
  expect([heard, unhandled]).toEqual([[7], [failure]]);
});

it("refuses what is no function", () => {
  expect(() => new Emitter().add(undefined as never)).toThrow("listener must be a function, got undefined");
});
