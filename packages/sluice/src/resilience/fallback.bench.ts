// What does not fail. Against the floor: a `try` around it.
import { compare } from "../../../../bench/harness.ts";
import { fallback } from "./fallback.ts";

const call = (): Promise<number> => Promise.resolve(1);

await compare("fallback", 100_000, {
  async sluice(ops) {
    const policy = fallback(0);
    for (let i = 0; i < ops; i += 1) await policy.run(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await orZero();
  },
});

async function orZero(): Promise<number> {
  try {
    return await call();
  } catch {
    return 0;
  }
}
