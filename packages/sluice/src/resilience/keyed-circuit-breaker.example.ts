// Webhooks go to many origins. One that is down is spared, and the others notice nothing.
import { KeyedCircuitBreaker } from "sluice";

const origins = new KeyedCircuitBreaker({ failures: 1, maxKeys: 1_000 });

async function post(origin: string, isUp: boolean): Promise<void> {
  const result = await origins
    .run(origin, () => (isUp ? "delivered" : Promise.reject(new Error("connection refused"))))
    .catch((error: Error) => error.name);
  console.log(origin, result);
}

await post("https://down.example", false);
await post("https://down.example", false);
await post("https://up.example", true);
console.log(origins.for("https://down.example").state, origins.stats());

// Prints:
// https://down.example Error
// https://down.example CircuitOpenError
// https://up.example delivered
// open { keys: 2, tripped: 1, evicted: 0 }
