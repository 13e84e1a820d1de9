/** Dotted paths into the data of an event: keys and array indexes, nothing inherited and no `length`. */
import type { Json } from "@sluice/jobs";

export type Path = readonly string[];

export function compilePath(source: string): Path {
  return source.split(".");
}

/** What is there as text; undefined for what is missing, null, an array or an object. */
export function textAt(data: Json, path: Path): string | undefined {
  let value: unknown = data;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !isKey(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

function isKey(value: object, key: string): boolean {
  return Object.getOwnPropertyDescriptor(value, key)?.enumerable === true;
}
