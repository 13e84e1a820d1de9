import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { isPlain } from "./plain.ts";

class Account {
  readonly balance = 1;
}

class Accounts extends Array<Account> {}

it.each<[string, object]>([
  ["an object", { of: new Account() }],
  ["an object without a prototype", Object.create(null) as object],
  ["an array", [new Account()]],
  ["an object of another realm", runInNewContext("({})") as object],
  ["an array of another realm", runInNewContext("[]") as object],
])("takes %s for plain data", (_, value) => {
  expect(isPlain(value)).toBe(true);
});

it.each<[string, object]>([
  ["an instance of a class", new Account()],
  ["an instance of a class whose prototype has none", Object.create(Object.create(null) as object) as object],
  ["an array of a class of its own", new Accounts()],
  ["an object that inherits from a plain one", Object.create({}) as object],
  ["a function", () => {}],
  ["a function without a prototype", Object.setPrototypeOf(() => {}, null) as object],
  ["a map", new Map()],
  ["a date", new Date(0)],
  ["a view", new Uint8Array(1)],
  ["a map of another realm", runInNewContext("new Map()") as object],
])("does not take %s for plain data", (_, value) => {
  expect(isPlain(value)).toBe(false);
});
