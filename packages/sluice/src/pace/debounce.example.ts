// A draft is saved once its author pauses, and at once when the window closes.
import { debounce, sleep } from "sluice";

const save = debounce((text: string) => console.log(`saved "${text}"`), 40);

for (const text of ["D", "De", "Dea", "Dear"]) save(text);
await sleep(60);

save("Dear A");
save("Dear Ada");
console.log(save.pending() ? "not saved yet" : "all saved");
save.flush();
console.log(save.pending() ? "not saved yet" : "all saved");

// Prints:
// saved "Dear"
// not saved yet
// saved "Dear Ada"
// all saved
