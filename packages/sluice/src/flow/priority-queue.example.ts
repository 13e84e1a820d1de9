// Mail by importance: codes before receipts before news, and within each as it came.
import { PriorityQueue } from "sluice";

interface Mail {
  readonly kind: "code" | "receipt" | "news";
  readonly to: string;
}

const importance = { code: 2, receipt: 1, news: 0 };
const outbox = new PriorityQueue<Mail>(100, { priorityOf: ({ kind }) => importance[kind], agingMs: 5_000 });

await outbox.put({ kind: "news", to: "ann" });
await outbox.put({ kind: "receipt", to: "bob" });
await outbox.put({ kind: "code", to: "cleo" });
await outbox.put({ kind: "news", to: "dan" }, { priority: 3 }); // for once

outbox.close();
for await (const { kind, to } of outbox) console.log(`${kind} to ${to}`);

// What finds no room makes way for the more important.
const recent = new PriorityQueue<string>(2, {
  whenFull: "drop-oldest",
  onUndelivered: (item) => console.log(`no ${item}`),
});
await recent.put("low", { priority: 1 });
await recent.put("high", { priority: 2 });
console.log(await recent.put("middle", { priority: 1.5 }), await recent.put("lowest", { priority: 0 }));
console.log(recent.pollBatch(9));

// Prints:
// news to dan
// code to cleo
// receipt to bob
// news to ann
// no low
// true false
// [ 'high', 'middle' ]
