// A dozen orders on a bad day of the payment service: one answer comes too late, one is lost, one card is declined, one
// charge fails until somebody looks at it, and there are fewer lamps than orders.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { CircuitBreaker } from "sluice";
import { OrderBook } from "./order-book.ts";
import { OrderPipeline } from "./order-pipeline.ts";
import { type Behaviour, PaymentServer } from "./payment-server.ts";
import { Payments } from "./payments.ts";

const folder = mkdtempSync(join(tmpdir(), "orders-"));
const path = join(folder, "shop.db");
const server = await PaymentServer.start();
const store = await SqliteStore.open({ path });
const book = new OrderBook(path, store);
const heard = new Map<string, number>();
const orders = new OrderPipeline({
  store,
  book,
  payments: new Payments({ url: server.url, timeoutMs: 250, breaker: new CircuitBreaker({ cooldownMs: 50 }) }),
  notify: async ({ id }) => void heard.set(id, (heard.get(id) ?? 0) + 1),
  retry: { baseMs: 5, maxMs: 20 },
});
const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));

const moods: Record<string, Behaviour> = { "charge-1": "late", "charge-2": "lost", "charge-3": "declined" };
let isMended = false;
server.behave = (key, request) => {
  if (key === "charge-4" && !isMended) return "busy";
  return request === 1 || key === "charge-3" ? (moods[key] ?? "well") : "well";
};

try {
  book.restock("lamp", 8);
  const all = Array.from({ length: 12 }, (_, index) => ({ id: `${index}`, sku: "lamp", quantity: 1, cents: 1_250 }));
  console.log("taken in:", await orders.take([...all, { id: "12", sku: "lamp" }, all[5]], stop.signal));
  console.log("refused:", book.refused());
  orders.start();
  await orders.idle(stop.signal);
  for (const { queue, payload, attempts, reason } of await orders.deadLetters())
    console.log("given up:", queue, payload, `after ${attempts} attempts: ${reason?.split(":")[0]}`);

  isMended = true;
  console.log("tried again:", await orders.redrive());
  await orders.idle(stop.signal);
  console.log("in the end:", book.states(), "lamps left:", book.stock("lamp"));
  const charges = server.entries.filter(({ key }) => key.startsWith("charge"));
  const paid = all.reduce((sum, { id }) => sum + server.balance(id), 0);
  console.log(`charged ${new Set(charges.map(({ key }) => key)).size} orders in ${charges.length} charges`);
  console.log(`kept ${paid / 1_250} prices; ${heard.size} customers know`);
} catch (error) {
  if (!stop.signal.aborted) throw error;
  console.log((error as Error).message);
} finally {
  const { clean } = await orders.stop();
  book.close();
  await store.close();
  await server.stop();
  rmSync(folder, { recursive: true });
  console.log(clean ? "stopped, nothing left inside" : "stopped in haste");
}

// Prints:
// taken in: { accepted: 12, known: 1, refused: 1 }
// refused: [ { item: '{"id":"12","sku":"lamp"}', reason: 'no quantity' } ]
// given up: charge { order: '4' } after 10 attempts: HttpStatusError
// tried again: 1
// in the end: { allocated: 8, declined: 1, refunded: 3 } lamps left: 0
// charged 11 orders in 11 charges
// kept 8 prices; 12 customers know
// stopped, nothing left inside
