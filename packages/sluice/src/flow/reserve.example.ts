// Rendering a frame is dear, and there is room for two. A place is held first, so that no frame is made for nothing; it
// goes back when there is nothing to put into it.
import { Queue } from "sluice";

const frames = new Queue<string>(2);

async function render(scene: string): Promise<void> {
  using place = await frames.reserve();
  const { size, reserved } = frames.stats();
  console.log(`${scene}: ${size} ready, ${reserved} to come`);
  await Promise.resolve(); // here the work would be done
  if (scene === "empty") return console.log(`${scene}: nothing to show`);
  place.put(`frame of ${scene}`);
}

await Promise.all([render("forest"), render("empty"), render("harbour")]);
console.log(frames.pollBatch(2));

// Without waiting: a place now, or none. Meanwhile nobody else gets it.
const place = frames.tryReserve();
console.log(frames.tryReserve() !== undefined, frames.tryReserve());
console.log(frames.offer("frame of a passer-by"));

// Whoever has a place may fill it after the end, too.
frames.close();
console.log(place?.put("frame of the end"), await frames.take());

// Prints:
// forest: 0 ready, 2 to come
// empty: 0 ready, 2 to come
// empty: nothing to show
// harbour: 1 ready, 1 to come
// [ 'frame of forest', 'frame of harbour' ]
// true undefined
// false
// true frame of the end
