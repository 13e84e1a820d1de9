import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { DelayQueue } from "../delay-queue.ts";
import { PriorityQueue } from "../priority-queue.ts";
import { Queue } from "../queue.ts";
import { queueCases, type QueueSubject } from "./queue-cases.ts";

const newClock = (): VirtualClock => new VirtualClock();

const plain: QueueSubject = { name: "Queue", newClock, open: (capacity, options) => new Queue(capacity, options) };
const subjects: readonly QueueSubject[] = [
  plain,
  { name: "PriorityQueue", newClock, open: (capacity, options) => new PriorityQueue(capacity, options) },
  {
    name: "DelayQueue",
    newClock,
    open: (capacity, options) => new DelayQueue(capacity, options),
    lacks: { handOff: "an item must be in to ripen" },
  },
];

for (const subject of subjects) for (const { title, run } of queueCases(subject)) it(title, run);

it("has cases for any runner, such as the one of Node", () => {
  const file = fileURLToPath(new URL("./node-test.stage.ts", import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", file], { encoding: "utf8", env });
  const count = queueCases(plain).length;
  expect([/^# pass (\d+)$/m.exec(stdout)?.[1], /^# fail (\d+)$/m.exec(stdout)?.[1]]).toEqual([`${count}`, "0"]);
});

/** Queues of careless people, by what is wrong with them. */
const careless: Readonly<Record<string, <T>(queue: Queue<T>) => void>> = {
  "loses one of ten items"(queue) {
    let offered = 0;
    const offer = queue.offer.bind(queue);
    queue.offer = (item) => (offered += 1) % 10 === 0 || offer(item);
  },
  "gives the latest first"(queue) {
    const poll = queue.pollBatch.bind(queue);
    queue.pollBatch = (max) => poll(max).toReversed();
  },
  "forgets what is in when it is closed"(queue) {
    const close = queue.close.bind(queue);
    queue.close = () => (queue.pollBatch(Infinity), close());
  },
  "closes without telling who waits"(queue) {
    const close = queue.close.bind(queue);
    queue.close = () => void (queue.stats().waitingConsumers === 0 && close());
  },
};

it.each(Object.keys(careless))("F08.4: the cases find out a queue that %s", async (fault) => {
  const cases = queueCases({
    ...plain,
    open(capacity, options) {
      const queue = new Queue(capacity, options);
      careless[fault]?.(queue as Queue<unknown>);
      return queue;
    },
  });
  const hung = settled(new VirtualClock()); // one for all, since the turns of many take long
  const outcomes = await Promise.all(
    cases.map(({ run }) =>
      Promise.race([
        run().then(
          () => "passed",
          () => "failed",
        ),
        hung,
      ]),
    ),
  );
  expect(outcomes.filter((each) => each !== "passed").length).toBeGreaterThan(0);
  expect(outcomes.filter((each) => each === "passed").length).toBeGreaterThan(cases.length / 2);
});

/** Long after every case that ends has ended. */
async function settled(clock: VirtualClock): Promise<string> {
  for (let turns = 0; turns < 5_000; turns += 1) await clock.advance(0);
  return "hung";
}
