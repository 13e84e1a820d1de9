/** The thread that writes: one message in, one out. What it does is in `engine.ts`. */
import { parentPort, workerData } from "node:worker_threads";
import { toFailure } from "./failure.ts";
import type { Batch } from "./operation.ts";
import { openEngine, type Setup } from "./setup.ts";

const { engine, failure } = await openEngine(workerData as Setup, () => performance.now()).then(
  (opened) => ({ engine: opened, failure: undefined }),
  (error: unknown) => ({ engine: undefined, failure: toFailure(error) }),
);
parentPort?.postMessage({ failure });
if (engine !== undefined) {
  parentPort?.on("message", (batch: Batch | undefined) => {
    if (batch !== undefined) {
      parentPort?.postMessage(engine.run(batch));
    } else {
      engine.close();
      parentPort?.close();
    }
  });
}
