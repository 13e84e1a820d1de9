// A burst of calls within one wait, per call, against the floor: a flag and the argument, which knows no time.
import { compare, type Work } from "../../../../bench/harness.ts";
import { debounce } from "./debounce.ts";
import { throttle } from "./throttle.ts";

const WAIT_MS = 10_000;

let sum = 0;
const add = (value: number): void => void (sum += value);

interface Cancellable {
  (value: number): unknown;
  cancel(): void;
}

function burst(make: () => Cancellable): Work {
  return (ops) => {
    const paced = make();
    for (let i = 0; i < ops; i += 1) paced(i);
    paced.cancel();
  };
}

function flag(): Cancellable {
  let [latest, isCalled] = [0, false];
  const call = (value: number): void => {
    latest = value;
    isCalled = true;
  };
  const cancel = (): void => {
    if (isCalled) add(latest);
  };
  return Object.assign(call, { cancel });
}

// As in a program, none is the only one of its kind: else each run would begin in the interpreter.
const others = [debounce(add, 1), throttle(add, 1), flag()];
for (const other of others) {
  other(0);
  other.cancel();
}

await compare("debounce", 3_000_000, { sluice: burst(() => debounce(add, WAIT_MS)), floor: burst(flag) });
await compare("throttle", 3_000_000, { sluice: burst(() => throttle(add, WAIT_MS)), floor: burst(flag) });

if (others.length === 0) throw new Error("they must live up to here");
