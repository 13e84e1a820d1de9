// Against the floor: an AbortController that the first failure aborts, and Promise.allSettled to wait for the others.
import { compare, weigh } from "../../../../bench/harness.ts";
import { TaskGroup } from "./task-group.ts";

const CHILDREN = 100;
const task = (): Promise<void> => Promise.resolve();
const never = (): Promise<void> => new Promise(() => {});

class Floor {
  readonly #stop = new AbortController();
  readonly #children: Promise<unknown>[] = [];

  run<T>(fn: (context: { readonly signal: AbortSignal }) => Promise<T>): Promise<T> {
    const child = fn(this.#stop);
    child.catch((error: unknown) => this.#stop.abort(error));
    this.#children.push(child);
    return child;
  }

  async join(): Promise<void> {
    await Promise.allSettled(this.#children);
    if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
  }
}

await compare("task-group", 100_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += CHILDREN) {
      const group = new TaskGroup();
      for (let child = 0; child < CHILDREN; child += 1) void group.run(task);
      await group.join();
    }
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += CHILDREN) {
      const group = new Floor();
      for (let child = 0; child < CHILDREN; child += 1) void group.run(task);
      await group.join();
    }
  },
});

await compare("task-group-one", 50_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) {
      const group = new TaskGroup();
      void group.run(task);
      await group.join();
    }
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) {
      const group = new Floor();
      void group.run(task);
      await group.join();
    }
  },
});

await weigh("task-group-child", 100_000, {
  sluice(count) {
    const group = new TaskGroup();
    for (let i = 0; i < count; i += 1) void group.run(never);
    return group;
  },
  floor(count) {
    const group = new Floor();
    for (let i = 0; i < count; i += 1) void group.run(never);
    return group;
  },
});
