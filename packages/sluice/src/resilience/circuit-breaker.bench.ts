// The path that is taken nearly always: closed, and the call succeeds. Against the floor: an await of the call itself.
import { compare, weigh } from "../../../../bench/harness.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";

const call = (): Promise<number> => Promise.resolve(1);

await compare("circuit-breaker", 500_000, {
  async sluice(ops) {
    const breaker = new CircuitBreaker();
    for (let i = 0; i < ops; i += 1) await breaker.run(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await call();
  },
  async "by hand"(ops) {
    let failures = 0;
    const succeed = (value: number): number => {
      failures = 0;
      return value;
    };
    const fail = (error: unknown): never => {
      failures += 1;
      throw error;
    };
    for (let i = 0; i < ops; i += 1) await call().then(succeed, fail);
    return failures;
  },
});

await compare("circuit-breaker-open", 200_000, {
  async sluice(ops) {
    const breaker = new CircuitBreaker({ failures: 1, cooldownMs: 1e9 });
    await breaker.run(() => Promise.reject(new Error("down"))).catch(() => {});
    for (let i = 0; i < ops; i += 1) await breaker.run(call).catch(() => {});
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await Promise.reject(new Error("open")).catch(() => {});
  },
});

await weigh("circuit-breaker-size", 10_000, {
  sluice: (count) => Array.from({ length: count }, () => new CircuitBreaker()),
  floor: (count) => Array.from({ length: count }, () => ({ state: "closed", failures: 0, openUntil: 0 })),
});
