// A name is checked as one types it: one question once the typing pauses, and its answer for whoever asked meanwhile.
import { debounceAsync } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const isFree = debounceAsync(
  async (name: string) => {
    console.log(`asks for "${name}"`);
    if (name === "") throw new RangeError("no name");
    return name !== "ada";
  },
  300,
  { clock },
);

const answers = [isFree("a"), isFree("ad"), isFree("ada")];
await clock.advance(300);
console.log(await Promise.all(answers));

// Not every answer is a value: those who wait for one run get its error, too.
const none = isFree("");
const failed = none.catch((error: Error) => error.message);
await clock.advance(300);
console.log(await failed);

// The form is sent: no need to wait for the pause.
void isFree("bob");
console.log("bob is free:", await isFree.flush());

// The form is closed: nobody waits for ever.
const last = isFree("cem").catch((error: Error) => error.name);
isFree.cancel();
console.log(await last, isFree.pending());

// Where an older question must get no newer answer:
const strict = debounceAsync((name: string) => name.toUpperCase(), 300, { superseded: "reject", clock });
const both = [strict("o"), strict("ok")].map((answer) => answer.catch((error: Error) => error.name));
await clock.advance(300);
console.log(await Promise.all(both));

// Prints:
// asks for "ada"
// [ false, false, false ]
// asks for ""
// no name
// asks for "bob"
// bob is free: true
// ClearedError false
// [ 'SupersededError', 'OK' ]
