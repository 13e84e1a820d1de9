// A page made of three answers: it needs the user, waits for the orders no longer than 50 ms, and does without offers.
import { fanOut } from "sluice";

const user = async (): Promise<string> => "Ada";
const orders = ({ signal }: { readonly signal: AbortSignal }): Promise<string[]> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
const offers = (): Promise<string[]> => Promise.reject(new Error("offers are down"));

const { values, branches, complete } = await fanOut(
  {
    user,
    orders: { run: orders, timeoutMs: 50, optional: true, fallback: ["unknown"] },
    offers: { run: offers, optional: true },
  },
  { timeoutMs: 1_000 }, // for the whole
);
console.log(values, complete);
for (const [name, { status, error }] of Object.entries(branches)) {
  console.log(error instanceof Error ? `${name} ${status}: ${error.message}` : `${name} ${status}`);
}

// A required branch that fails ends the others, and is the error once they have ended.
const stock = ({ signal }: { readonly signal: AbortSignal }): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => {
      console.log("stock query cancelled");
      resolve();
    });
  });
try {
  await fanOut({ stock, price: () => Promise.reject(new Error("no price")) });
} catch (error) {
  console.log("failed:", (error as Error).message);
}

// Fan-out within fan-out multiplies.
const three = { a: user, b: user, c: user };
const { calls } = await fanOut({ x: () => fanOut(three), y: () => fanOut(three) });
console.log(calls, "calls");

// Prints:
// { user: 'Ada', orders: [ 'unknown' ], offers: undefined } false
// user succeeded
// orders timed-out: timed out after 50 ms
// offers failed: offers are down
// stock query cancelled
// failed: no price
// 6 calls
