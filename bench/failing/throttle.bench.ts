// A burst of calls within one wait, per call. Against the peers, and against the floor, which is a flag and the arguments.
import { throttle as toolkitThrottle } from "es-toolkit";
import lodash from "lodash";
import { throttle } from "sluice";
import { compare, type Work } from "../harness.ts";

const WAIT_MS = 10_000;

let sum = 0;
const add = (value: number): void => void (sum += value);

interface Throttled {
  (value: number): unknown;
  cancel(): void;
}

function burst(make: () => Throttled): Work {
  return (ops) => {
    const throttled = make();
    for (let i = 0; i < ops; i += 1) throttled(i);
    throttled.cancel();
  };
}

/** Knows no time but the timer's: takes a call after a stall for one of the burst. */
function byHand(fn: (value: number) => void, waitMs: number): Throttled {
  let latest = 0;
  let isCalled = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onTimer = (): void => {
    timer = isCalled ? setTimeout(onTimer, waitMs) : undefined;
    if (isCalled) fn(latest);
    isCalled = false;
  };
  const throttled = (value: number): void => {
    latest = value;
    if (timer !== undefined) {
      isCalled = true;
      return;
    }
    timer = setTimeout(onTimer, waitMs);
    fn(value);
  };
  return Object.assign(throttled, { cancel: () => clearTimeout(timer) });
}

// As in a program, none is the only one of its kind: else each run would begin in the interpreter.
const others = [throttle(add, 1), lodash.throttle(add, 1), toolkitThrottle(add, 1), byHand(add, 1)];
for (const other of others) {
  other(0);
  other.cancel();
}

await compare("throttle", 3_000_000, {
  throttle: burst(() => throttle(add, WAIT_MS)),
  lodash: burst(() => lodash.throttle(add, WAIT_MS)),
  "es-toolkit": burst(() => toolkitThrottle(add, WAIT_MS)),
  floor: burst(() => byHand(add, WAIT_MS)),
});

if (others.length === 0) throw new Error("they must live up to here");
