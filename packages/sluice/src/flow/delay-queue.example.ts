// Reminders that come when they are due, one of which is called off.
import { DelayQueue } from "sluice";

const reminders = new DelayQueue<string>(1_000);

await reminders.put("stand up", { delayMs: 30 });
await reminders.put("drink", { dueAt: Date.now() + 15 });
await reminders.put("call back", { delayMs: 24 * 3_600_000 });
await reminders.put("hello");
console.log(reminders.remove("call back"), reminders.size);

reminders.close(); // nothing new, but what is in still comes in its time
for await (const reminder of reminders) console.log(reminder);

// Prints:
// true 3
// hello
// drink
// stand up
