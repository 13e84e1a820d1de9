// Types fast, then slowly, at a server whose answers come out of order; with --serve, keeps it for a browser instead.
import { once } from "node:events";
import { sleep } from "sluice";
import { findAt, SearchBox } from "./search-box.ts";
import { SearchServer } from "./search-server.ts";

if (process.argv.includes("--serve")) await serve();
else await exercise();

/** The shorter the question, the longer the answer takes: whoever types slowly would see the first answer last. */
async function serve(): Promise<void> {
  const { bundle } = await import("./bundle.ts");
  const server = await SearchServer.start(await bundle(), (question) =>
    sleep(Math.max(0, 2_500 - 500 * question.length)),
  );
  console.log(`open ${server.url}, and look at the requests; Ctrl+C ends it`);
  await Promise.race(["SIGINT", "SIGTERM"].map((name) => once(process, name)));
  await server.stop();
}

async function exercise(): Promise<void> {
  const slow = Promise.withResolvers<void>();
  const server = await SearchServer.start(new Map(), async (question) => {
    if (question === "ov") await slow.promise;
  });
  const shown = Promise.withResolvers<void>();
  const box = new SearchBox(
    findAt(`${server.url}search`),
    {
      empty: () => console.log("shows nothing"),
      asking: (question) => console.log(`asks for ${question}`),
      found(question, results) {
        console.log(`shows for ${question}: ${results.join(", ")}`);
        shown.resolve();
      },
      failed: (question, error) => console.log(`shows that ${question} failed: ${String(error)}`),
    },
    { waitMs: 50 },
  );
  for (const text of ["o", "ov"]) box.type(text);
  await server.heard("asked", "ov");
  for (const text of ["ove", "oven"]) box.type(text);
  await server.heard("left", "ov");
  await shown.promise;
  slow.resolve(); // too late
  box.type("");
  console.log(`the server was asked for: ${server.asked.join(", ")}`);
  console.log(`nobody waited any more for: ${server.left.join(", ")}`);
  await server.stop();
}

// Prints:
// asks for ov
// asks for oven
// shows for oven: oven, oven glove
// shows nothing
// the server was asked for: ov, oven
// nobody waited any more for: ov
