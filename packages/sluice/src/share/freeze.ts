/** Makes plain data unchangeable, all the way down. */
import { isPlain } from "../internal/plain.ts";

/** Of what is known to be frozen all through, so that only what is new has to be walked. */
const frozen = new WeakSet<object>();

/**
 * Freezes objects and arrays with all that is in them. Throws `TypeError` before it has frozen anything, if there is
 * something that stays changeable though it is frozen: a Map, Set, Date, typed array or other instance of a class, a
 * function, a getter or setter.
 */
export function deepFreeze<T>(value: T): T {
  const found = new Set<object>();
  collect(value, "the value", found);
  for (const object of found) {
    Object.freeze(object);
    frozen.add(object);
  }
  return value;
}

function collect(root: unknown, name: string, found: Set<object>): void {
  const open: { readonly value: unknown; readonly path: string }[] = [{ value: root, path: name }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next;
    if ((typeof value !== "object" && typeof value !== "function") || value === null) continue;
    if (frozen.has(value) || found.has(value)) continue;
    if (!isPlain(value)) throw refusal(path, `is a ${nameOf(value)}`);
    found.add(value);
    for (const key of Reflect.ownKeys(value)) {
      const property = Reflect.getOwnPropertyDescriptor(value, key);
      if (property?.get !== undefined || property?.set !== undefined)
        throw refusal(`${path}.${String(key)}`, "is a getter or setter");
      open.push({ value: property?.value, path: `${path}.${String(key)}` });
    }
  }
}

function nameOf(value: object): string {
  if (typeof value === "function") return "function";
  const { constructor } = value as { readonly constructor?: { readonly name?: unknown } };
  return typeof constructor?.name === "string" && constructor.name !== "" ? constructor.name : "class instance";
}

function refusal(path: string, what: string): TypeError {
  return new TypeError(`${path} ${what}, which stays changeable when frozen; give plain data, or freeze: false`);
}
