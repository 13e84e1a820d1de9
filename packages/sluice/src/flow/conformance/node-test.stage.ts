// The conformance cases under the runner that comes with Node: `node --conditions=@sluice/source --test FILE`.
import { test } from "node:test";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { Queue } from "../queue.ts";
import { queueCases } from "./queue-cases.ts";

const subject = {
  name: "Queue",
  newClock: () => new VirtualClock(),
  open: <T>(capacity: number, options: object) => new Queue<T>(capacity, options),
};

for (const { title, run } of queueCases(subject)) void test(title, run);
