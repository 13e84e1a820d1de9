// Against the floor: a Map of breakers that keeps all of them for ever.
import { compare } from "../../../../bench/harness.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { KeyedCircuitBreaker } from "./keyed-circuit-breaker.ts";

const keys = Array.from({ length: 1_000 }, (_, origin) => `https://${origin}.example`);

await compare("keyed-circuit-breaker", 1_000_000, {
  sluice(ops) {
    const keyed = new KeyedCircuitBreaker();
    for (let i = 0; i < ops; i += 1) keyed.for(keys[i % keys.length] ?? "");
    return keyed;
  },
  floor(ops) {
    const breakers = new Map<string, CircuitBreaker>();
    for (let i = 0; i < ops; i += 1) {
      const key = keys[i % keys.length] ?? "";
      if (!breakers.has(key)) breakers.set(key, new CircuitBreaker());
    }
    return breakers;
  },
});
