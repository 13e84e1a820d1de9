// An upload reports each of its 100 parts. The bar is drawn at the first, now and then, and at the last.
import { throttle } from "sluice";

let drawn = 0;
const draw = throttle((part: number) => {
  drawn += 1;
  if (part === 1 || part === 100) console.log(`${part} of 100`);
}, 1_000);

for (let part = 1; part <= 100; part += 1) draw(part);
draw.flush(); // the upload is over: no need to wait
console.log(`drawn ${drawn} times`);

// Prints:
// 1 of 100
// 100 of 100
// drawn 2 times
