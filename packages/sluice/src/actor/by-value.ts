/**
 * Messages that share nothing with their sender: what is sent is copied by the structured clone algorithm, in the turn of
 * the call, so that neither side sees what the other changes later. It takes time for each part of a message, and memory
 * for all of it: `copiedBytes` in the stats says how much that comes to.
 */
import { isPlain } from "../internal/plain.ts";
import type { Copied } from "./actor-options.ts";

/**
 * A copy, and how large it is. It takes what is plain data: values that are no objects, arrays, plain objects, `Map`,
 * `Set`, `Date`, `RegExp`, `Error`, buffers and views of them, also where they refer to each other in a circle.
 *
 * `bytes` is an estimate, made by walking all of it: 2 for each unit of a string, 8 for each number, boolean or nothing
 * and for each 64 bits of a bigint, 16 for each object with 8 for each place in it, and buffers as long as they are. Names
 * of properties count nothing, since objects of one shape share them.
 * @throws TypeError that names the place of what cannot be copied (a function, a symbol, an instance of a class, shared
 * memory), where the algorithm would refuse it without saying where, or turn it into something else
 */
export function byValue<T>(value: T): Copied<T> {
  const bytes = sizeOf(value, new Set());
  if (bytes >= 0) return { copy: structuredClone(value), bytes };
  throw firstUnfit(value, "message", new Set());
}

const OBJECT = 16;
const PLACE = 8;
const UNFIT = -Infinity;

/** Negative if there is something in it that cannot be copied. What has been `seen` counts nothing. */
function sizeOf(value: unknown, seen: Set<unknown>): number {
  if (typeof value === "string") return 2 * value.length;
  if (typeof value === "bigint") return PLACE * Math.ceil(value.toString(16).length / 16);
  if (typeof value === "function" || typeof value === "symbol") return UNFIT;
  if (typeof value !== "object" || value === null) return PLACE;
  if (seen.has(value)) return 0;
  seen.add(value);
  const parts = partsOf(value);
  if (typeof parts === "number") return OBJECT + parts;
  let bytes = OBJECT;
  for (const part of parts) bytes += PLACE + sizeOf(part, seen);
  return bytes;
}

/** Of what it is made, the keys of a map included, or how large it is where it has no parts. */
function partsOf(value: object): Iterable<unknown> | number {
  if (Array.isArray(value)) return value as unknown[];
  if (isPlain(value)) return Object.values(value);
  if (ArrayBuffer.isView(value)) return [value.buffer];
  switch (kindOf(value)) {
    case "Map":
      return [...(value as Map<unknown, unknown>)].flat();
    case "Set":
      return value as Set<unknown>;
    case "Date":
      return 0;
    case "RegExp":
      return 2 * (value as RegExp).source.length;
    case "Error":
      return 2 * ((value as Error).stack ?? (value as Error).message).length;
    case "ArrayBuffer":
      return (value as ArrayBuffer).byteLength;
    default:
      return UNFIT;
  }
}

/** Where it is, for the second walk: the first has no time to remember. */
function firstUnfit(value: unknown, place: string, seen: Set<unknown>): TypeError | undefined {
  if (sizeOf(value, new Set(seen)) >= 0) return undefined;
  seen.add(value);
  const parts = typeof value === "object" && value !== null ? partsOf(value) : UNFIT;
  if (typeof parts === "number") return new TypeError(`${place} is ${titleOf(value)}, which cannot be sent by value`);
  for (const [name, part] of namedParts(value as object, parts)) {
    const found = firstUnfit(part, `${place}.${name}`, seen);
    if (found !== undefined) return found;
  }
  return undefined;
}

function namedParts(value: object, parts: Iterable<unknown>): Iterable<readonly [string, unknown]> {
  if (Array.isArray(value) || isPlain(value)) return Object.entries(value);
  if (!(value instanceof Map))
    return [...parts].map((part) => [ArrayBuffer.isView(value) ? "buffer" : "a member", part]);
  return [...value].flatMap(([key, held]) => [["a key", key] as const, [String(key), held] as const]);
}

function titleOf(value: unknown): string {
  return typeof value === "object" ? `a ${value?.constructor?.name ?? kindOf(value)}` : `a ${typeof value}`;
}

function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}
