// Two tasks take two locks in opposite order, and somebody forgets to give a permit back. The doctor says so.
import { Mutex, Semaphore, sleep } from "sluice";
import { doctor, enable, onEvent } from "sluice/observe";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
using _ = enable({ clock });
const stop = onEvent(({ name, subject }) => console.log(`${name}: ${subject.kind} ${subject.name}`));

const [stock, ledger] = [new Mutex({ name: "stock", clock }), new Mutex({ name: "ledger", clock })];
async function takeBoth(first: Mutex, second: Mutex): Promise<void> {
  await first.run(async () => {
    await sleep(1, { clock });
    await second.run(() => {});
  });
}
void takeBoth(stock, ledger);
void takeBoth(ledger, stock);

const printers = new Semaphore(2, { name: "printers", clock });
await printers.acquire(); // and no release

await clock.advance(20_000);
for (const { id, evidence, remedy } of doctor({ clock, maxHeldMs: 20_000 }))
  console.log(`${id} ${evidence}\n     ${remedy}`);
stop();

// Prints:
// stalled: mutex stock
// H01 mutex "stock" has not got back what it gave out 20 s ago
//      hold it by `run(fn)` or `using`, so that it goes back on every path, and hold it for no longer than needed
// H01 mutex "ledger" has not got back what it gave out 20 s ago
//      hold it by `run(fn)` or `using`, so that it goes back on every path, and hold it for no longer than needed
// H01 semaphore "printers" has not got back what it gave out 20 s ago
//      hold it by `run(fn)` or `using`, so that it goes back on every path, and hold it for no longer than needed
// H03 mutex "stock" is held up by one who waits for mutex "ledger", which is held up by one who waits for mutex "stock", all for 20 s
//      take all at once with `acquireAll`, or take them in one order everywhere
// H07 mutex "stock" has 1 of 1 taken and 1 waiting, the oldest for 20 s
//      widen it if what it protects can take more, else turn work away earlier; give slow work a limiter of its own
// H07 mutex "ledger" has 1 of 1 taken and 1 waiting, the oldest for 20 s
//      widen it if what it protects can take more, else turn work away earlier; give slow work a limiter of its own
