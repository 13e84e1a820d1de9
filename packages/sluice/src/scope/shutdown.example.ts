// An HTTP server puts orders into a queue, whose workers send mail under a limit. All of it stops in order: no new
// requests, then the queue runs dry, then the limiter, and at last what they stand on.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Limiter, Queue, shutdown, sleep } from "sluice";

const stopping = shutdown({ timeoutMs: 8_000, signals: ["SIGTERM", "SIGINT"] });

stopping.add("database", { close: () => console.log("the database is closed") });
const mail = new Limiter(2);
const orders = new Queue<string>(100);
const workers = orders.consume((order) => mail.run(() => send(order)), { workers: 4 });
const server = createServer((request, response) => {
  void orders.put(`order ${request.url}`).then(() => response.end("accepted\n"));
});

stopping.add("http", server);
stopping.add("orders", orders, { done: workers }); // from the source to the sink
stopping.add("mail", mail);

async function send(order: string): Promise<void> {
  await sleep(1);
  console.log(`sent ${order}`);
}

await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;
await fetch(`http://127.0.0.1:${port}/1`).then((response) => response.text());

process.emit("SIGTERM", "SIGTERM"); // as the platform would
const { clean, by, targets } = await stopping.finished;
for (const { name, phase, outcome } of targets) console.log(`${phase}: ${name} ${outcome}`);
console.log(clean ? "all clean" : "somebody was still inside", `after ${by}`);

// Prints:
// sent order /1
// the database is closed
// intake: http stopped
// drain: orders stopped
// drain: mail stopped
// close: database stopped
// all clean after SIGTERM
