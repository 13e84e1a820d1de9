import { expectTypeOf } from "vitest";
import { type SingleFlight, singleFlight } from "./single-flight.ts";

const flights = singleFlight(async (id: number, { signal }) => ({ id, isLive: !signal.aborted }));

expectTypeOf(flights).toEqualTypeOf<SingleFlight<number, { id: number; isLive: boolean }>>();
expectTypeOf(flights.load(1, { timeoutMs: 5 })).toEqualTypeOf<Promise<{ id: number; isLive: boolean }>>();
// @ts-expect-error ids are numbers
void flights.load("1");
// @ts-expect-error a duration is a number of milliseconds
singleFlight((id: number) => id, { timeoutMs: "5s" });
