// What limits, ages and signals add to a flight without them, which is the floor here. Against the peers, and against a
// floor that is written by hand, see `bench/failing`.
import { compare } from "../../../../bench/harness.ts";
import { singleFlight, type SingleFlightOptions } from "./single-flight.ts";

const CALLERS = 100;

async function crowds(ops: number, options?: SingleFlightOptions<number>, signal?: AbortSignal): Promise<void> {
  const flights = singleFlight((key: number) => Promise.resolve(key), options);
  const waits = signal === undefined ? undefined : { signal };
  for (let key = 0; key < ops / CALLERS; key += 1)
    await Promise.all(Array.from({ length: CALLERS }, () => flights.load(key, waits)));
}

await compare("single-flight-limits", 50_000, {
  singleFlight: (ops) => crowds(ops, { timeoutMs: 1_000, maxJoinAgeMs: 1_000 }),
  floor: (ops) => crowds(ops),
});

await compare("single-flight-signal", 50_000, {
  singleFlight: (ops) => crowds(ops, undefined, new AbortController().signal),
  floor: (ops) => crowds(ops),
});
