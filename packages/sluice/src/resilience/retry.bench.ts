// The path that is taken nearly always: the first attempt succeeds. Against the floor: an await of the call itself.
import { compare } from "../../../../bench/harness.ts";
import { retry } from "./retry.ts";

const call = (): Promise<number> => Promise.resolve(1);
const { signal } = new AbortController();

async function byHand<T>(fn: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fn(attempt);
    } catch (error) {
      if (attempt > 3) throw error;
    }
  }
}

await compare("retry", 500_000, {
  async sluice(ops) {
    const policy = retry();
    for (let i = 0; i < ops; i += 1) await policy.run(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await call();
  },
  async "by hand"(ops) {
    for (let i = 0; i < ops; i += 1) await byHand(call);
  },
});

await compare("retry-signal", 200_000, {
  async sluice(ops) {
    const policy = retry();
    for (let i = 0; i < ops; i += 1) await policy.run(call, { signal });
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await call();
  },
});

await compare("retry-deadline", 100_000, {
  async sluice(ops) {
    const policy = retry({ deadline: 10_000 });
    for (let i = 0; i < ops; i += 1) await policy.run(call, { signal });
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await call();
  },
});
