// A cart that is handed to an actor, and changed while it waits there. By value, the actor has it as it was sent, and who
// asks for its state gets a copy that nobody else sees.
import { Actor, byValue } from "sluice";

interface Cart {
  readonly items: string[];
}

const till = new Actor<Cart, string[]>(
  100,
  () => {
    const sold: string[] = [];
    return ({ items }) => {
      sold.push(...items);
      return sold;
    };
  },
  { copy: byValue },
);

const cart: Cart = { items: ["tea"] };
const answer = till.ask(cart);
cart.items.push("a piano"); // too late
const sold = await answer;
console.log(sold);

sold.length = 0; // of no consequence to anybody
console.log(await till.ask({ items: ["sugar"] }));

// It has its price, which can be watched; without an actor, it can be looked at before.
console.log(`${till.stats().copiedBytes} bytes copied`);
console.log(`${byValue({ items: ["tea"], scan: new Uint8Array(4_096) }).bytes} bytes with a scan`);

// What can't be copied is refused where it is sent, and by the name of its place.
const odd = { items: ["tea"], buyer: { greet: () => "hello" } };
await till.tell(odd).catch((error: unknown) => console.log(String(error)));

// Prints:
// [ 'tea' ]
// [ 'tea', 'sugar' ]
// 190 bytes copied
// 4198 bytes with a scan
// TypeError: message.buyer.greet is a function, which cannot be sent by value
