// Two parties that wake each other in turn, against the floor: a resolver that each leaves for the other.
import { compare } from "../../../../bench/harness.ts";
import { SignalSemaphore } from "./signal-semaphore.ts";

class Floor {
  #isUp = false;
  #wake: (() => void) | undefined;

  acquire(): Promise<void> {
    if (!this.#isUp) return new Promise((resolve) => (this.#wake = resolve));
    this.#isUp = false;
    return Promise.resolve();
  }

  release(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    if (wake === undefined) this.#isUp = true;
    else wake();
  }
}

interface Flag {
  acquire(): Promise<void>;
  release(): void;
}

async function pingPong(ops: number, ping: Flag, pong: Flag): Promise<void> {
  const answer = async (): Promise<void> => {
    for (let i = 0; i < ops; i += 1) {
      await ping.acquire();
      pong.release();
    }
  };
  const answering = answer();
  for (let i = 0; i < ops; i += 1) {
    ping.release();
    await pong.acquire();
  }
  await answering;
}

await compare("signal-semaphore", 100_000, {
  SignalSemaphore: (ops) => pingPong(ops, new SignalSemaphore(1), new SignalSemaphore(1)),
  floor: (ops) => pingPong(ops, new Floor(), new Floor()),
});
