// Against the floor: a promise around a timer, which nothing can end. All sleeps run at once.
import { compare } from "../../../../bench/harness.ts";
import { sleep } from "./sleep.ts";

const { signal } = new AbortController();

await compare("sleep", 100_000, {
  sluice: (ops) => Promise.all(Array.from({ length: ops }, () => sleep(1))),
  floor: (ops) => Promise.all(Array.from({ length: ops }, () => new Promise((resolve) => void setTimeout(resolve, 1)))),
});

await compare("sleep-signal", 100_000, {
  sluice: (ops) => Promise.all(Array.from({ length: ops }, () => sleep(1, { signal }))),
  floor: (ops) => Promise.all(Array.from({ length: ops }, () => new Promise((resolve) => void setTimeout(resolve, 1)))),
});
