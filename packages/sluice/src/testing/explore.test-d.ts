import { expectTypeOf } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { explore, type ExploreReport } from "./explore.ts";
import type { ExploreStage } from "./explore/scenario.ts";

declare const stage: ExploreStage;

expectTypeOf(stage.step("waits")).toEqualTypeOf<Promise<void>>();
expectTypeOf(stage.step("reads", () => 1)).toEqualTypeOf<Promise<number>>();
expectTypeOf(stage.step("asks", () => Promise.resolve("a"))).toEqualTypeOf<Promise<string>>();
expectTypeOf(stage.step("hears", Promise.resolve(true))).toEqualTypeOf<Promise<boolean>>();
expectTypeOf(stage.choose("the call", ["works", "fails"])).toEqualTypeOf<"works" | "fails">();
expectTypeOf(stage.task("Ann", ({ step }) => step("reads", () => 1))).toEqualTypeOf<Promise<number>>();
expectTypeOf(stage.clock).toEqualTypeOf<Clock>();
expectTypeOf(explore(({ task }) => task("Ann", () => {}))).toEqualTypeOf<Promise<ExploreReport>>();
// @ts-expect-error a schedule is a list of labels
void explore(() => {}, { schedule: [1] });
