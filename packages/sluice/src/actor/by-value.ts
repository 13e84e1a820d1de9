/**
 * Messages that share nothing with their sender: what is sent is copied by the structured clone algorithm, in the turn of
 * the call, so that neither side sees what the other changes later. It takes time for each part of a message, and memory
 * for all of it: `copiedBytes` in the stats says how much that comes to.
 */
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
  const bytes = new Measure().of(value);
  return { copy: structuredClone(value), bytes };
}

class Measure {
  /** What is referred to twice is copied once. */
  readonly #seen = new Set<unknown>();
  readonly #path: string[] = [];

  of(value: unknown): number {
    if (typeof value === "string") return 2 * value.length;
    if (typeof value === "bigint") return 8 * Math.ceil(value.toString(16).length / 16);
    if (typeof value === "function" || typeof value === "symbol") throw this.#refusal(`a ${typeof value}`);
    return typeof value === "object" && value !== null ? this.#ofObject(value) : 8;
  }

  #ofObject(value: object): number {
    if (this.#seen.has(value)) return 0;
    this.#seen.add(value);
    if (ArrayBuffer.isView(value)) return 16 + this.of(value.buffer);
    const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
    switch (kind) {
      case "Array":
        return this.#ofParts(Object.entries(value));
      case "Map":
        return this.#ofParts(
          [...(value as Map<unknown, unknown>)].flatMap(([key, held]) => [
            ["a key", key],
            [String(key), held],
          ]),
        );
      case "Set":
        return this.#ofParts([...(value as Set<unknown>)].map((held) => ["a member", held]));
      case "Date":
        return 16;
      case "RegExp":
        return 16 + 2 * (value as RegExp).source.length;
      case "Error":
        return 16 + 2 * ((value as Error).stack ?? (value as Error).message).length;
      case "ArrayBuffer":
        return 16 + (value as ArrayBuffer).byteLength;
      case "Object":
        if (isPlain(value)) return this.#ofParts(Object.entries(value));
    }
    throw this.#refusal(`a ${value.constructor?.name ?? kind}`);
  }

  #ofParts(parts: readonly (readonly [name: string, value: unknown])[]): number {
    let bytes = 16;
    for (const [name, value] of parts) {
      this.#path.push(name);
      bytes += 8 + this.of(value);
      this.#path.pop();
    }
    return bytes;
  }

  #refusal(what: string): TypeError {
    const place = ["message", ...this.#path].join(".");
    return new TypeError(`${place} is ${what}, which cannot be sent by value`);
  }
}

/** Of whatever realm. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
