// The path that is taken nearly always: closed, and the call succeeds. Against the peers, and against the floor, which is
// the call alone. Each kind of window against its like.
import { circuitBreaker, ConsecutiveBreaker, CountBreaker, handleAll, type IBreaker, SamplingBreaker } from "cockatiel";
import OpossumBreaker from "opossum";
import { CircuitBreaker, type CircuitTripFactory, countWindow, timeWindow } from "sluice";
import { compare, type Work } from "../harness.ts";

const task = async (): Promise<number> => 1;

function ours(trip?: CircuitTripFactory): Work {
  return async (ops) => {
    const breaker = new CircuitBreaker({ trip });
    for (let i = 0; i < ops; i += 1) await breaker.run(task);
  };
}

function cockatiel(make: () => IBreaker): Work {
  return async (ops) => {
    const breaker = circuitBreaker(handleAll, { halfOpenAfter: 30_000, breaker: make() });
    for (let i = 0; i < ops; i += 1) await breaker.execute(task);
  };
}

async function opossum(ops: number): Promise<void> {
  const breaker = new OpossumBreaker(task, { timeout: false });
  for (let i = 0; i < ops; i += 1) await breaker.fire();
  breaker.shutdown();
}

async function floor(ops: number): Promise<void> {
  for (let i = 0; i < ops; i += 1) await task();
}

// As in a program, none is the only one of its kind.
const others = [
  new CircuitBreaker(),
  circuitBreaker(handleAll, { halfOpenAfter: 1, breaker: new ConsecutiveBreaker(5) }),
];

await compare("breaker", 200_000, {
  CircuitBreaker: ours(),
  cockatiel: cockatiel(() => new ConsecutiveBreaker(5)),
  opossum,
  floor,
});

await compare("breaker-count", 200_000, {
  CircuitBreaker: ours(countWindow({ size: 100 })),
  cockatiel: cockatiel(() => new CountBreaker({ threshold: 0.5, size: 100 })),
});

await compare("breaker-time", 200_000, {
  CircuitBreaker: ours(timeWindow({ windowMs: 10_000 })),
  cockatiel: cockatiel(() => new SamplingBreaker({ threshold: 0.5, duration: 10_000 })),
  opossum,
});

if (others.length === 0) throw new Error("they must live up to here");
