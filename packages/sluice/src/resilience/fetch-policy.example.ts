// A payment over HTTP, to a server that is busy at first and loses its first answer. It knows a repetition by its key.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fetchPolicy } from "sluice";

const paid = new Set<unknown>();
let requests = 0;
const server = createServer((request, response) => {
  requests += 1;
  if (requests === 1) return void response.writeHead(503, { "retry-after": "0" }).end();
  paid.add(request.headers["idempotency-key"]);
  if (requests === 2) return void request.socket.destroy(); // paid, but nobody hears of it
  return void response.end(`paid ${paid.size} time`);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

const bank = fetchPolicy({ attemptTimeoutMs: 2_000, deadline: 10_000, baseMs: 10, sendDeadline: true });
const receipt = await bank(url, { method: "POST", body: "12.50", idempotencyKey: "order-7" });
console.log(receipt.status, await receipt.text(), `after ${requests} requests`);

// Without a key there is no telling whether it was done: it is not done again.
requests = 0;
const unkeyed = await bank(url, { method: "POST", body: "12.50" });
console.log(unkeyed.status, `after ${requests} request`);

server.close();

// Prints:
// 200 paid 1 time after 3 requests
// 503 after 1 request
