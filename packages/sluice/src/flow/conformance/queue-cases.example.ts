// Two queues made of ours, and what every queue must do. With a test runner: `for (const { title, run } of …) it(title, run)`.
import { Queue } from "sluice";
import { queueCases, VirtualClock } from "sluice/testing";

class CountingQueue<T> extends Queue<T> {
  offered = 0;

  override offer(item: T): boolean {
    this.offered += 1;
    return super.offer(item);
  }
}

class HurriedQueue<T> extends Queue<T> {
  override take(): Promise<T> {
    return this.size > 0 ? super.take() : Promise.resolve(undefined as T); // waits for nobody
  }
}

for (const Subject of [CountingQueue, HurriedQueue]) {
  const cases = queueCases({
    name: Subject.name,
    open: (capacity, options) => new Subject(capacity, options),
    newClock: () => new VirtualClock(),
  });
  const shown = cases.filter((each) => /gives items in the order|closes once/.test(each.title));
  for (const { title, run } of shown) {
    console.log(title);
    console.log(
      await run().then(
        () => "  passes",
        (error: Error) => `  fails: ${error.message}`,
      ),
    );
  }
}

// Prints:
// CountingQueue gives items in the order in which they came
//   passes
// CountingQueue ends the wait of consumers when it is closed, and closes once
//   passes
// HurriedQueue gives items in the order in which they came
//   passes
// HurriedQueue ends the wait of consumers when it is closed, and closes once
//   fails: expected [["CLOSED", "CLOSED"], true], got [[undefined, [undefined]], true]
