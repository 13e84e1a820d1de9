// The path on which the first attempt answers in time: no peer for promises hedges. The floor: a timer, a controller and
// a promise by hand, for one more attempt, which forgets its losers and knows no caller.
import { failover, hedge, LatencyPercentile } from "sluice";
import { compare } from "../harness.ts";

const AFTER_MS = 1_000;
const task = (): Promise<number> => Promise.resolve(1);
const taskWithSignal = ({ signal }: { signal: AbortSignal }): Promise<boolean> => Promise.resolve(signal.aborted);
const broken = new Error("down");

const policy = hedge({ hedgeAfterMs: AFTER_MS });
const learning = hedge({ hedgeAfterMs: new LatencyPercentile(95, { minSamples: 1, minMs: AFTER_MS }) });

await compare("hedge", 50_000, {
  async hedge(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await byHand(task);
  },
});

await compare("hedge-signal", 50_000, {
  async hedge(ops) {
    for (let i = 0; i < ops; i += 1) await policy.run(taskWithSignal);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await byHand(taskWithSignal);
  },
});

await compare("hedge-percentile", 50_000, {
  async hedge(ops) {
    for (let i = 0; i < ops; i += 1) await learning.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await byHand(task);
  },
});

// The first target fails at once, the second answers. The floor: a loop.
const targets = ["first", "second"];
const ask = ({ target }: { target: string }): Promise<string> =>
  target === "first" ? Promise.reject(broken) : Promise.resolve(target);
const over = failover(targets);

await compare("failover", 50_000, {
  async failover(ops) {
    for (let i = 0; i < ops; i += 1) await over.run(ask);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await inTurn();
  },
});

function byHand<T>(fn: (context: AbortController) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const controllers: AbortController[] = [];
    let failures = 0;
    const begin = (): void => {
      const controller = new AbortController();
      controllers.push(controller);
      fn(controller).then((value) => win(controller, value), lose);
    };
    const win = (winner: AbortController, value: T): void => {
      clearTimeout(timer);
      for (const other of controllers) if (other !== winner) other.abort();
      resolve(value);
    };
    const lose = (error: unknown): void => {
      failures += 1;
      if (failures === 2) reject(error);
    };
    const timer = setTimeout(begin, AFTER_MS);
    begin();
  });
}

async function inTurn(): Promise<string> {
  const errors: unknown[] = [];
  for (const target of targets) {
    try {
      return await ask({ target });
    } catch (error) {
      errors.push(error);
    }
  }
  throw new AggregateError(errors);
}
