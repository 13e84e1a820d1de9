import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Actor } from "./actor.ts";
import { byValue } from "./by-value.ts";

it("F08.3: shares nothing between sender and actor, neither by a message nor by a reply", async () => {
  const kept: { tags: string[] }[] = [];
  const actor = new Actor<{ tags: string[] }, { tags: string[] }>(
    8,
    () => (message) => {
      kept.push(message);
      return message;
    },
    { copy: byValue },
  );
  const message = { tags: ["sent"] };
  const asked = actor.ask(message);
  message.tags.push("after");
  const reply = await asked;
  expect(reply).toEqual({ tags: ["sent"] });
  reply.tags.push("by the sender");
  expect(kept).toEqual([{ tags: ["sent"] }]);
});

it("F08.3: without it, both have the same object", async () => {
  const actor = new Actor<{ tags: string[] }>(8, () => (message) => message);
  const message = { tags: ["sent"] };
  expect(await actor.ask(message)).toBe(message);
});

it("F08.5: counts what was copied, messages and replies", async () => {
  const actor = new Actor<ArrayBuffer, string>(8, () => () => "abc", { copy: byValue });
  await actor.tell(new ArrayBuffer(1_000));
  await actor.ask(new ArrayBuffer(500));
  expect(actor.stats().copiedBytes).toBe(1_016 + 516 + 6);
});

it.each<[string, unknown, number]>([
  ["a string", "abc", 6],
  ["a number", 1, 8],
  ["undefined", undefined, 8],
  ["null", null, 8],
  ["a boolean", true, 8],
  ["a bigint", 2n ** 64n, 16],
  ["an array", [1, 2], 16 + 2 * 16],
  ["an object", { a: "abc", b: {} }, 16 + (8 + 6) + (8 + 16)],
  ["a map", new Map([["abc", 1]]), 16 + (8 + 6) + 16],
  ["a set", new Set([1]), 16 + 16],
  ["a date", new Date(0), 16],
  ["a regular expression", /abc/, 16 + 6],
  ["a view", new Uint8Array(10), 16 + (8 + 16 + 10)],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), 16 + 16],
])("copies %s, and says of how many bytes", (_, value, bytes) => {
  const copied = byValue(value);
  expect(copied.bytes).toBe(bytes);
  expect(copied.copy).toEqual(value);
  if (typeof value === "object" && value !== null) expect(copied.copy).not.toBe(value);
});

it("counts once what is referred to twice, and takes what refers to itself", () => {
  const shared = ["abc"];
  const value: Record<string, unknown> = { one: shared, two: shared };
  value["self"] = value;
  const { copy, bytes } = byValue(value);
  expect(bytes).toBe(16 + 3 * 8 + (16 + 8 + 6));
  expect(copy["one"]).toBe(copy["two"]);
  expect(copy["self"]).toBe(copy);
});

it("takes plain objects and errors of whatever realm", () => {
  const foreign = runInNewContext("({ list: [1], map: new Map() })") as object;
  expect(byValue(foreign).bytes).toBe(16 + (8 + 16 + 16) + (8 + 16));
  const error = new RangeError("odd");
  expect(byValue(error).copy).toMatchObject({ name: "RangeError", message: "odd" });
  expect(byValue(error).bytes).toBeGreaterThan(16 + 2 * "odd".length);
});

class Account {
  readonly balance = 1;
}

it.each<[string, unknown, string]>([
  ["a function", { order: { onDone: () => {} } }, "message.order.onDone is a function, which cannot be sent by value"],
  ["a symbol", [Symbol("s")], "message.0 is a symbol"],
  ["an instance of a class", new Map([["me", new Account()]]), "message.me is a Account"],
  ["a promise", new Set([Promise.resolve()]), "message.a member is a Promise"],
  ["shared memory", new Uint8Array(new SharedArrayBuffer(8)), "message.buffer is a SharedArrayBuffer"],
])("refuses %s, and says where it is", (_, value, says) => {
  expect(() => byValue(value)).toThrow(says);
  expect(() => byValue(value)).toThrow(TypeError);
});

it("refuses to send what cannot be copied, and loses nothing by it", async () => {
  const actor = new Actor<unknown>(8, () => (message) => (message === "give" ? () => {} : message), {
    copy: byValue,
  });
  await expect(actor.tell(() => {})).rejects.toThrow(TypeError);
  await expect(actor.ask(() => {})).rejects.toThrow(TypeError);
  expect(() => actor.tryTell(() => {})).toThrow(TypeError);
  expect(actor.stats()).toMatchObject({ size: 0, waitingReplies: 0, completed: 0 });
  await expect(actor.ask("give")).rejects.toThrow(TypeError); // the reply
  expect(actor.stats()).toMatchObject({ completed: 1, failed: 0, waitingReplies: 0 });
  expect(await actor.ask("on")).toBe("on");
});
