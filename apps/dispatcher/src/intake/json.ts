/** JSON from outside, as bytes: read as UTF-8 or not at all, and measured before anything recurses into it. */
import type { Json } from "@sluice/jobs";

/** Objects and arrays within each other; V8 reads any depth, but most that handle JSON recurse. */
const MAX_DEPTH = 100;

const utf8 = new TextDecoder("utf-8", { fatal: true }); // drops a byte order mark

export type ParsedJson = { readonly value: Json } | { readonly fault: string };

/** Of keys that are given twice the last holds, as in every `JSON.parse`; what is stored is written anew, so all agree. */
export function parseJson(bytes: Uint8Array): ParsedJson {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { fault: "must be UTF-8" };
  }
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { fault: `must be JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** What keeps a value from being stored and handed on unchanged; undefined if nothing does. */
export function faultOf(value: Json): { readonly path: readonly string[]; readonly detail: string } | undefined {
  const stack: { readonly value: Json | undefined; readonly path: readonly string[] }[] = [{ value, path: [] }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { path } = next;
    if (next.value === Infinity || next.value === -Infinity) return { path, detail: "must be a number below 1.8e308" };
    if (typeof next.value !== "object" || next.value === null) continue;
    if (path.length >= MAX_DEPTH) return { path, detail: `must be nested at most ${MAX_DEPTH} deep` };
    for (const [key, child] of Object.entries(next.value)) {
      if (typeof child === "object" || typeof child === "number") stack.push({ value: child, path: [...path, key] });
    }
  }
  return undefined;
}
