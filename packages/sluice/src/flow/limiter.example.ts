// Two mails at a time, and two more in line. Whoever finds the line full learns it at once.
import { Limiter, limiter, QueueFullError } from "sluice";

// #region bulkhead
const smtp = new Limiter(2, { capacity: 2 });

async function send(mail: string): Promise<void> {
  try {
    await smtp.run(async ({ signal }) => {
      console.log(`${mail} starts, ${smtp.running} running, ${smtp.waiting} waiting`);
      await Promise.resolve(); // here a client would be handed the signal
      signal?.throwIfAborted();
    });
    console.log(`${mail} sent`);
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error;
    console.log(`${mail} refused: ${error.limit} wait already`);
  }
}

await Promise.all(["a", "b", "c", "d", "e"].map(send));
// #endregion

// Shutting down: no newcomers, and those that were accepted end.
const last = send("f");
smtp.close();
await smtp.drain();
await last;
console.log(smtp.stats().completed, "in all");

// Nothing starts while the database moves; then the most urgent does.
const db = new Limiter(1);
db.pause();
void db.run(() => console.log("report"), { id: "report" });
void db.run(() => console.log("login"), { priority: 1 });
void db.run(() => console.log("page"));
db.setPriority("report", -1);
db.resume();
await db.drain();

// The same as one function.
const limit = limiter(3);
console.log(await limit.map([1, 2, 3, 4], (n) => n * n));

// Prints:
// a starts, 1 running, 0 waiting
// b starts, 2 running, 0 waiting
// e refused: 2 wait already
// c starts, 2 running, 0 waiting
// a sent
// d starts, 2 running, 0 waiting
// b sent
// c sent
// d sent
// f starts, 1 running, 0 waiting
// f sent
// 5 in all
// login
// page
// report
// [ 1, 4, 9, 16 ]
