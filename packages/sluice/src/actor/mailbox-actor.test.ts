import { it } from "vitest";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { Actor } from "./actor.ts";

const drain: AbortSubject = {
  name: "Actor.drain",
  open(clock) {
    const gate = Promise.withResolvers<void>();
    const actor = new Actor<number>(1, () => () => gate.promise, { clock });
    actor.tryTell(1);
    return {
      call: (options) => actor.drain(options),
      satisfy: () => {
        gate.resolve();
        return actor.drain();
      },
      state: () => ({ inside: actor.size + actor.stats().running }),
    };
  },
};

for (const { title, run } of abortCases(drain)) it(title, run);
