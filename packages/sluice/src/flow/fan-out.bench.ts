// Against the floor: `Promise.all`, which knows neither limits nor signals nor names nor how long each took.
import { compare } from "../../../../bench/harness.ts";
import { fanOut } from "./fan-out.ts";

const branch = async (): Promise<number> => 1;

await compare("fan-out", 20_000, {
  async fanOut(ops) {
    for (let times = 0; times < ops; times += 1) await fanOut({ a: branch, b: branch, c: branch });
  },
  async floor(ops) {
    for (let times = 0; times < ops; times += 1) await Promise.all([branch(), branch(), branch()]);
  },
});
