// A shelf with room for two: who brings waits for room, who takes waits for something to be there.
import { Condition, Mutex } from "sluice";

const mutex = new Mutex();
const [notEmpty, notFull] = [new Condition(mutex), new Condition(mutex)]; // one for each thing to wait for
const shelf: string[] = [];

async function bring(item: string): Promise<void> {
  await mutex.run(async ({ guard }) => {
    await notFull.waitFor(guard, () => shelf.length < 2);
    shelf.push(item);
    console.log(`brought ${item}, ${shelf.length} there`);
    notEmpty.signal();
  });
}

async function take(): Promise<void> {
  await mutex.run(async ({ guard }) => {
    await notEmpty.waitFor(guard, () => shelf.length > 0);
    console.log(`took ${shelf.shift()}, ${shelf.length} there`);
    notFull.signal();
  });
}

await Promise.all([take(), bring("bread"), bring("milk"), bring("eggs"), bring("salt"), take()]);

// Prints:
// brought bread, 1 there
// brought milk, 2 there
// took bread, 1 there
// took milk, 0 there
// brought eggs, 1 there
// brought salt, 2 there
