import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SupersededError } from "sluice";
import { VirtualClock } from "sluice/testing";
import { findAt, SearchBox, type SearchView } from "./search-box.ts";
import { SearchServer } from "./search-server.ts";

interface Request extends PromiseWithResolvers<readonly string[]> {
  readonly question: string;
  readonly signal: AbortSignal;
}

class Shown implements SearchView {
  readonly log: string[] = [];

  empty(): void {
    this.log.push("nothing");
  }

  asking(question: string): void {
    this.log.push(`${question}?`);
  }

  found(question: string, results: readonly string[]): void {
    this.log.push(`${question}: ${results.join(", ")}`);
  }

  failed(question: string, error: unknown): void {
    this.log.push(`${question}: ${String(error)}`);
  }
}

let clock: VirtualClock;
let shown: Shown;
let requests: Request[];
let box: SearchBox;

/** Answers when it is told to, whatever becomes of its signal. */
function find(question: string, signal: AbortSignal): Promise<readonly string[]> {
  const request = { question, signal, ...Promise.withResolvers<readonly string[]>() };
  requests.push(request);
  return request.promise;
}

async function type(text: string, pauseMs = 250): Promise<void> {
  box.type(text);
  await clock.advance(pauseMs);
}

async function answer(index: number, ...results: string[]): Promise<void> {
  requests[index]?.resolve(results);
  await turn();
}

const asked = (): string[] => requests.map(({ question }) => question);
const aborted = (): boolean[] => requests.map(({ signal }) => signal.aborted);

beforeEach(() => {
  clock = new VirtualClock();
  shown = new Shown();
  requests = [];
  box = new SearchBox(find, shown, { clock });
});

it("D08: asks once when the typing pauses, for what is in the box then", async () => {
  for (const text of ["o", "ov", "ove", "oven "]) await type(text, 200);
  expect(asked()).toEqual([]);
  await clock.advance(49);
  expect(asked()).toEqual([]);
  await clock.advance(1);
  expect(asked()).toEqual(["oven"]);
  await answer(0, "oven", "oven glove");
  expect(shown.log).toEqual(["oven?", "oven: oven, oven glove"]);
});

it("ends the older request when it asks anew", async () => {
  await type("o");
  await type("ov", 249);
  expect(aborted()).toEqual([false]);
  await clock.advance(1);
  expect([asked(), aborted()]).toEqual([
    ["o", "ov"],
    [true, false],
  ]);
  expect(requests[0]?.signal.reason).toBeInstanceOf(SupersededError);
});

it.each([
  ["before", [0, 1]],
  ["after", [1, 0]],
])("J60: shows no answer to an older question that comes %s the newer one's", async (_, order) => {
  await type("o");
  await type("ov");
  for (const index of order) await answer(index, `answer ${index}`);
  expect(shown.log).toEqual(["o?", "ov?", "ov: answer 1"]);
});

it("shows no failure of an older question", async () => {
  await type("o");
  await type("ov");
  requests[0]?.reject(new Error("broken"));
  await answer(1, "oven");
  expect(shown.log).toEqual(["o?", "ov?", "ov: oven"]);
});

it("shows an answer that comes while the next question is being typed", async () => {
  await type("o");
  box.type("ov");
  await answer(0, "oven", "onion box");
  expect(shown.log).toEqual(["o?", "o: oven, onion box"]);
});

it("asks nothing, and shows nothing that comes late, once the box is empty", async () => {
  await type("o");
  await type("ov", 100);
  await type("  ", 1_000);
  await answer(0, "oven");
  expect([asked(), aborted(), shown.log]).toEqual([["o"], [true], ["o?", "nothing"]]);
});

it("asks at once when it is told to, and not again after the pause", async () => {
  box.type("oven");
  box.submit();
  expect(asked()).toEqual(["oven"]);
  await clock.advance(1_000);
  expect(asked()).toEqual(["oven"]);
});

it("tells what went wrong, and asks the next question all the same", async () => {
  await type("o");
  requests[0]?.reject(new Error("broken"));
  await turn();
  await type("ov");
  await answer(1, "oven");
  expect(shown.log).toEqual(["o?", "o: Error: broken", "ov?", "ov: oven"]);
});

it("gives an answer five seconds, then ends the request and says so", async () => {
  await type("oven");
  await clock.advance(4_999);
  expect(aborted()).toEqual([false]);
  await clock.advance(1);
  expect([aborted(), shown.log]).toEqual([[true], ["oven?", "oven: TimeoutError: timed out after 5000 ms"]]);
});

it("L10: leaves nothing behind when it is closed", async () => {
  await type("o");
  await type("ov", 100);
  box.close();
  expect([aborted(), clock.timers]).toEqual([[true], 0]);
  await clock.advance(1_000);
  await answer(0, "oven");
  expect([asked(), shown.log]).toEqual([["o"], ["o?"]]);
});

let server: SearchServer | undefined;

afterEach(() => server?.stop());

it("lets the server know that nobody waits any more", async () => {
  const ready = Promise.withResolvers<void>();
  server = await SearchServer.start(new Map(), () => ready.promise);
  const real = new SearchBox(findAt(`${server.url}search`), shown);
  real.type("o");
  real.submit();
  await server.heard("asked", "o");
  real.type("oven & co");
  real.submit();
  await server.heard("left", "o");
  await server.heard("asked", "oven & co");
  real.close();
  await server.heard("left", "oven & co");
});

it("takes an answer other than 2xx for a failure", async () => {
  server = await SearchServer.start(new Map(), () => Promise.resolve());
  await expect(findAt(`${server.url}search`)("!", AbortSignal.any([]))).rejects.toThrow("the server answered 500");
  expect(await findAt(`${server.url}search`)("oven", AbortSignal.any([]))).toEqual(["oven", "oven glove"]);
});
