// A read and an update, against a variable that is read and replaced: what the guarantees of a snapshot cost.
import { compare } from "../../../../bench/harness.ts";
import { Snapshot } from "./snapshot.ts";

await compare("snapshot-read", 1_000_000, {
  Snapshot(ops) {
    const snapshot = new Snapshot({ count: 1 });
    let sum = 0;
    for (let i = 0; i < ops; i += 1) sum += snapshot.get().count;
    return sum;
  },
  floor(ops) {
    const holder = { value: Object.freeze({ count: 1 }) };
    let sum = 0;
    for (let i = 0; i < ops; i += 1) sum += holder.value.count;
    return sum;
  },
});

await compare("snapshot-update", 100_000, {
  async Snapshot(ops) {
    const snapshot = new Snapshot({ count: 0 });
    for (let i = 0; i < ops; i += 1) await snapshot.update(({ count }) => ({ count: count + 1 }));
    return snapshot.get();
  },
  async floor(ops) {
    let value: Readonly<{ count: number }> = Object.freeze({ count: 0 });
    for (let i = 0; i < ops; i += 1) await Promise.resolve((value = Object.freeze({ count: value.count + 1 })));
    return value;
  },
});
