/**
 * JSON that comes back as it went in. `JSON.stringify` alone leaves out functions, turns NaN into null and a Map into
 * {}: here each of these is an error that says where it is.
 */
const MAX_DEPTH = 200;
const encoder = new TextEncoder();

/** The text of `value`, at most `maxBytes` long in UTF-8. `name` is what errors call it. */
export function toJson(name: string, value: unknown, maxBytes: number): string {
  checkJson(name, value, []);
  const text = JSON.stringify(value);
  // A code unit takes one to three bytes, so that most texts need not be encoded to be measured.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = text.length > maxBytes ? text.length : encoder.encode(text).length;
  if (bytes <= maxBytes) return text;
  const atLeast = bytes === text.length ? "at least " : "";
  throw new RangeError(`${name} must be at most ${maxBytes} bytes as JSON, got ${atLeast}${bytes}`);
}

function checkJson(name: string, value: unknown, within: object[]): void {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "object") return checkContainer(name, value, within);
  if (typeof value !== "number") throw new TypeError(`${name} must be JSON, got ${typeof value}`);
  if (!Number.isFinite(value)) throw new RangeError(`${name} must be a finite number, got ${value}`);
}

function checkContainer(name: string, value: object, within: object[]): void {
  if (within.includes(value)) throw new TypeError(`${name} must be JSON, got a cycle`);
  if (within.length === MAX_DEPTH) throw new RangeError(`${name} must be at most ${MAX_DEPTH} levels deep`);
  within.push(value);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) checkJson(`${name}[${index}]`, value[index], within);
  } else {
    if (!isPlain(value)) throw new TypeError(`${name} must be JSON, got an instance of ${value.constructor?.name}`);
    for (const [key, item] of Object.entries(value)) {
      if (item !== undefined) checkJson(`${name}.${key}`, item, within);
    }
  }
  // What has it where no loop over its items sees it, JSON.stringify would ask all the same.
  if ("toJSON" in value && typeof value.toJSON === "function")
    throw new TypeError(`${name}.toJSON must be JSON, got function`);
  within.pop();
}

/** Also for an object of another realm, whose prototype is not this `Object.prototype`. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
