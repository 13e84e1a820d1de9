// Each document is saved when its own author pauses; a busy one holds up no other.
import { keyedDebounce } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock();
const save = keyedDebounce((id: string, text: string) => console.log(`${id}: "${text}"`), 40, {
  key: (id) => id,
  clock,
});

save("letter", "Dear");
save("list", "milk");
save("letter", "Dear Ada");
save("list", "milk, eggs");
console.log(`${save.keys()} documents wait`);
await clock.advance(60);
console.log(save.pending() ? "some wait" : "all saved");

// Prints:
// 2 documents wait
// letter: "Dear Ada"
// list: "milk, eggs"
// all saved
