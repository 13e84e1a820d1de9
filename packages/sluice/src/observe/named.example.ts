// Two limits have a name. What goes on behind the names can be read at any time, without a hand on the limits.
import { Semaphore } from "sluice";
import { named } from "sluice/observe";

const printers = new Semaphore(2, { name: "printers" });
const scanners = new Semaphore(1, { name: "scanners" });
const unnamed = new Semaphore(1);

{
  using _ = await printers.acquire();
  await unnamed.run(show);
  await Promise.all([scanners.run(show), scanners.run(() => {})]);
}

function show(): void {
  for (const { kind, name, stats } of named()) {
    if (stats !== undefined) console.log(`${kind} ${name}: ${stats["available"]} free, ${stats["waiting"]} waiting`);
  }
}

// Prints:
// semaphore printers: 1 free, 0 waiting
// semaphore scanners: 1 free, 0 waiting
// semaphore printers: 1 free, 0 waiting
// semaphore scanners: 0 free, 0 waiting
