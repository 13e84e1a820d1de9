// An alarm on age goes off once, however long it lasts, and is cleared when the line moves again.
import { Queue } from "sluice";
import { type Alarm, onEvent, watchAlarms } from "sluice/observe";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const orders = new Queue<string>(1_000, { name: "orders", clock });
using _ = watchAlarms([{ measure: "age", above: 5_000 }], { clock });
const stop = onEvent(({ name, subject, detail }) => console.log(name, subject.name, (detail as Alarm).value, "ms"));

await orders.put("two teas");
await clock.advance(60_000);
console.log("somebody comes to work:", orders.poll());
await clock.advance(2_000);
stop();

// Prints:
// raised orders 6000 ms
// somebody comes to work: two teas
// cleared orders 0 ms
