import { expectTypeOf } from "vitest";
import { type Calendar, type Schedule, schedule, type ScheduleTiming } from "../index.ts";

/** As croner's `Cron` is used. */
declare const cron: { nextRun(after: Date): Date | null };

const calendar = { next: (afterMs: number) => cron.nextRun(new Date(afterMs))?.getTime() };

expectTypeOf(calendar).toExtend<Calendar>();
expectTypeOf(schedule).returns.toEqualTypeOf<Schedule>();
expectTypeOf<{ everyMs: number }>().toExtend<ScheduleTiming>();
expectTypeOf<Schedule>().toExtend<AsyncDisposable & Disposable>();
// @ts-expect-error a duration is a number of milliseconds
void (() => schedule({ everyMs: "5m" }, () => {}));
// @ts-expect-error one policy out of three
void (() => schedule({ everyMs: 5 }, () => {}, { overlap: "replace" }));
