// A burst of calls within one wait, per call. Against the peers, and against the floor, which is a flag and the arguments.
import { debounce as toolkitDebounce } from "es-toolkit";
import lodash from "lodash";
import { debounce } from "sluice";
import { compare, type Work } from "../harness.ts";

const WAIT_MS = 10_000;

let sum = 0;
const add = (value: number): void => void (sum += value);

interface Debounced {
  (value: number): unknown;
  cancel(): void;
}

function burst(make: () => Debounced): Work {
  return (ops) => {
    const debounced = make();
    for (let i = 0; i < ops; i += 1) debounced(i);
    debounced.cancel();
  };
}

/** Knows no time but the timer's: fires up to a wait late, and takes a call after a stall for one of the burst. */
function byHand(fn: (value: number) => void, waitMs: number): Debounced {
  let latest = 0;
  let isCalled = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onTimer = (): void => {
    if (isCalled) timer = setTimeout(onTimer, waitMs);
    else fn(latest);
    isCalled = false;
  };
  const debounced = (value: number): void => {
    latest = value;
    isCalled = true;
    timer ??= setTimeout(onTimer, waitMs);
  };
  return Object.assign(debounced, { cancel: () => clearTimeout(timer) });
}

// As in a program, none is the only one of its kind: else each run would begin in the interpreter.
const others = [debounce(add, 1), lodash.debounce(add, 1), toolkitDebounce(add, 1), byHand(add, 1)];
for (const other of others) {
  other(0);
  other.cancel();
}

await compare("debounce", 3_000_000, {
  debounce: burst(() => debounce(add, WAIT_MS)),
  lodash: burst(() => lodash.debounce(add, WAIT_MS)),
  "es-toolkit": burst(() => toolkitDebounce(add, WAIT_MS)),
  floor: burst(() => byHand(add, WAIT_MS)),
});

if (others.length === 0) throw new Error("they must live up to here");
