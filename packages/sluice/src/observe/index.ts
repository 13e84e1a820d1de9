export type { Stats } from "../internal/names.ts";
export { type Named, type NamedFailure, type NamedStats, named } from "./named.ts";
