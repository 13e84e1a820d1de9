// Work that ends long before its limit. Against the floor: a timer that is set and cleared around the call.
import { compare } from "../../../../bench/harness.ts";
import { timeout } from "./timeout.ts";

const LIMIT_MS = 30_000;
const call = (): Promise<number> => Promise.resolve(1);
const callWithSignal = ({ signal }: { signal: AbortSignal }): Promise<boolean> => Promise.resolve(signal.aborted);
const { signal: parent } = new AbortController();

await compare("timeout", 100_000, {
  async sluice(ops) {
    const policy = timeout(LIMIT_MS);
    for (let i = 0; i < ops; i += 1) await policy.run(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) {
      const timer = setTimeout(() => {}, LIMIT_MS);
      await call();
      clearTimeout(timer);
    }
  },
});

await compare("timeout-signal", 100_000, {
  async sluice(ops) {
    const policy = timeout(LIMIT_MS);
    for (let i = 0; i < ops; i += 1) await policy.run(callWithSignal, { signal: parent });
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) {
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), LIMIT_MS);
      await callWithSignal(controller);
      clearTimeout(timer);
    }
  },
});
