// A search as one types: asks once the typing pauses, and shows no answer to an older question, however late it comes.
import { debounceAsync, latest, sleep, SupersededError } from "sluice";

/** The shorter the question, the more is found, and the longer it takes. */
const ask = latest(async ({ signal }, question: string) => {
  console.log(`asks for ${question}`);
  await sleep(question.length > 2 ? 10 : 5_000, { signal });
  return `found ${question}`;
});
const search = debounceAsync(ask, 30);

async function show(question: string): Promise<void> {
  try {
    console.log(await search(question));
  } catch (error) {
    if (!(error instanceof SupersededError)) throw error;
    console.log(`${question}: no longer wanted`);
  }
}

const shown = [show("o"), show("ov")];
await sleep(60); // a pause: "ov" is asked for
shown.push(show("ove"), show("oven"));
await Promise.all(shown);

// Prints:
// asks for ov
// asks for oven
// o: no longer wanted
// ov: no longer wanted
// found oven
// found oven
