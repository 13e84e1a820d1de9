/**
 * Whether it is plain data, whatever is in it: an object that no class has made, or an array, also of another realm, such
 * as a frame or a `vm` context.
 */
export function isPlain(value: object): boolean {
  if (typeof value === "function") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return true;
  if (Array.isArray(value)) return Object.hasOwn(prototype as object, "copyWithin");
  return Object.hasOwn(prototype as object, "isPrototypeOf") && Object.getPrototypeOf(prototype) === null;
}
