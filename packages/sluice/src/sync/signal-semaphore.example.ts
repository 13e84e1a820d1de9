// A worker sleeps until there is something to do. However often it is told while it works, it looks once more.
import { SignalSemaphore } from "sluice";

const news = new SignalSemaphore(1);
const inbox: string[] = [];

async function work(): Promise<void> {
  for (let rounds = 0; rounds < 2; rounds += 1) {
    await news.acquire();
    console.log(`found ${inbox.splice(0).join(" and ")}`);
  }
}

function post(letter: string): void {
  inbox.push(letter);
  console.log(`${letter} posted, ${news.release() ? "told" : "known already"}`);
}

post("a letter");
post("a card");
const working = work();
await Promise.resolve();
post("a parcel");
await working;

// Prints:
// a letter posted, told
// a card posted, known already
// found a letter and a card
// a parcel posted, told
// found a parcel
