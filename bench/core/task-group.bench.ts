import { Effect } from "effect";
import { TaskGroup } from "sluice";
import { compare } from "../harness.ts";

const CHILDREN = 100;
const task = (): Promise<void> => Promise.resolve();
const effects = Array.from({ length: CHILDREN }, () => Effect.promise(task));
const all = Effect.all(effects, { concurrency: "unbounded", discard: true });

await compare("task-group", 100_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += CHILDREN) {
      const group = new TaskGroup();
      for (let child = 0; child < CHILDREN; child += 1) void group.run(task);
      await group.join();
    }
  },
  async effect(ops) {
    for (let i = 0; i < ops; i += CHILDREN) await Effect.runPromise(all);
  },
});
