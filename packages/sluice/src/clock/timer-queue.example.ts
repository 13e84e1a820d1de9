// Leases that end one by one, by a clock of one's own: nothing here sets a timer of the runtime.
import { TimerQueue } from "sluice";

const queue = new TimerQueue();
const lease = (name: string): { onTimer(): void } => ({ onTimer: () => console.log(`${name} has ended`) });

queue.insert(5_000, lease("short"));
const renewed = queue.insert(5_000, lease("renewed"));
queue.insert(40 * 86_400_000, lease("long"));

console.log(queue.cancel(renewed), queue.cancel(renewed));
queue.insert(9_000, lease("renewed"));

for (const now of [4_999, 6_000, 60 * 86_400_000]) {
  console.log(`at ${now}, ${queue.size} are left, look again at ${queue.nextDueAt()}`);
  for (let due = queue.popDue(now); due !== undefined; due = queue.popDue(now)) due.onTimer();
}

// Prints:
// true false
// at 4999, 3 are left, look again at 5000
// at 6000, 3 are left, look again at 5000
// short has ended
// at 5184000000, 2 are left, look again at 9000
// renewed has ended
// long has ended
