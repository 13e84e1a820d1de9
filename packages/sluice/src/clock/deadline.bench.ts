// Made, used by one callee and closed. Against the floor: a controller with a timer, which knows no parent.
import { compare } from "../../../../bench/harness.ts";
import { Deadline } from "./deadline.ts";

const { signal } = new AbortController();

await compare("deadline", 100_000, {
  sluice(ops) {
    for (let i = 0; i < ops; i += 1) {
      const deadline = Deadline.after(30_000, { signal });
      void deadline.signal.aborted;
      deadline.close();
    }
  },
  floor(ops) {
    for (let i = 0; i < ops; i += 1) {
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), 30_000);
      void controller.signal.aborted;
      clearTimeout(timer);
    }
  },
});
