import { expectTypeOf } from "vitest";
import type { Queue } from "./queue.ts";
import { aborting, elapsing, iterating, putting, taking } from "./select-clause.ts";
import { select, trySelect } from "./select.ts";

declare const jobs: Queue<string>;
declare const numbers: Queue<number>;
declare const signal: AbortSignal;

const first = await select({
  job: taking(jobs),
  next: iterating(numbers),
  sent: putting(numbers, 1),
  late: elapsing(100),
  stop: aborting(signal),
  off: undefined as ReturnType<typeof taking<Date, object>> | undefined,
});

expectTypeOf(first.key).toEqualTypeOf<"job" | "next" | "sent" | "late" | "stop" | "off">();
if (first.key === "job") expectTypeOf(first.value).toEqualTypeOf<string>();
if (first.key === "next") expectTypeOf(first.value).toEqualTypeOf<IteratorResult<number, undefined>>();
if (first.key === "sent") expectTypeOf(first.value).toEqualTypeOf<boolean>();
if (first.key === "late") expectTypeOf(first.value).toEqualTypeOf<undefined>();
if (first.key === "stop") expectTypeOf(first.value).toEqualTypeOf<unknown>();
if (first.key === "off") expectTypeOf(first.value).toEqualTypeOf<Date>();

expectTypeOf(trySelect({ job: taking(jobs) })).toEqualTypeOf<
  { readonly key: "job"; readonly value: string } | undefined
>();
// @ts-expect-error an item of another type
putting(numbers, "one");
// @ts-expect-error a promise is no clause: it would go on taking when another has won
void select({ job: jobs.take() });
