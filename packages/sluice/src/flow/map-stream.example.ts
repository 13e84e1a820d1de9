// Thumbnails of an endless album, two at a time and no faster than they are looked at. Leaving the loop ends it all.
import { setImmediate } from "node:timers/promises";
import { mapStream } from "sluice";

function* album(): Generator<string> {
  try {
    for (let n = 1; ; n += 1) yield `picture ${n}`;
  } finally {
    console.log("the album is closed");
  }
}

const thumbnails = mapStream(album(), 2, async (picture, { signal }) => {
  console.log(`shrinks ${picture}`);
  await setImmediate();
  if (signal.aborted) console.log(`gives up ${picture}`);
  return `${picture}, small`;
});
for await (const thumbnail of thumbnails) {
  console.log(thumbnail);
  if (thumbnail.startsWith("picture 2")) break;
}
await setImmediate();

// A slow one holds up those behind it, unless each may come as soon as it is ready.
for (const ordered of [true, false]) {
  const slow = setImmediate("slow");
  const names: string[] = [];
  for await (const name of mapStream([slow, "a", "b"], 2, (each) => each, { ordered })) names.push(name);
  console.log(names.join(", "));
}

// Prints:
// shrinks picture 1
// shrinks picture 2
// shrinks picture 3
// picture 1, small
// shrinks picture 4
// picture 2, small
// the album is closed
// gives up picture 3
// gives up picture 4
// slow, a, b
// a, b, slow
