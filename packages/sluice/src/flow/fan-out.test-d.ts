import { expectTypeOf } from "vitest";
import { fanOut } from "./fan-out.ts";
import type { BranchReport } from "./fan-out-types.ts";

interface User {
  readonly name: string;
}
declare const user: (context: { readonly signal: AbortSignal }) => Promise<User>;
declare const orders: () => Promise<string[]>;

const { values, branches, width } = await fanOut({
  user,
  count: () => 7,
  limited: { run: user, timeoutMs: 50 },
  optional: { run: orders, optional: true },
  fallback: { run: orders, optional: true, fallback: [], timeoutMs: 50 },
  other: { run: orders, optional: true, fallback: null },
});

expectTypeOf(values.user).toEqualTypeOf<User>();
expectTypeOf(values.count).toEqualTypeOf<number>();
expectTypeOf(values.limited).toEqualTypeOf<User>();
expectTypeOf(values.optional).toEqualTypeOf<string[] | undefined>();
expectTypeOf(values.fallback).toEqualTypeOf<string[]>();
expectTypeOf(values.other).toEqualTypeOf<string[] | null>();
expectTypeOf(branches.user).toEqualTypeOf<BranchReport>();
expectTypeOf(width).toEqualTypeOf<number>();
// @ts-expect-error there is no such branch
void values.nobody;
// @ts-expect-error a fallback is for what the whole can do without
void fanOut({ required: { run: orders, fallback: [] } });
