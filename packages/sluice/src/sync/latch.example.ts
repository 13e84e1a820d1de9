// A server answers only when its three caches are warm; requests that come earlier wait, but not for ever.
import { Latch, TimeoutError } from "sluice";

const warm = new Latch(3);

async function answer(path: string, timeoutMs?: number): Promise<void> {
  try {
    await warm.wait({ timeoutMs });
    console.log(`200 ${path}`);
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
    console.log(`503 ${path}, ${warm.remaining} caches are still cold`);
  }
}

const early = answer("/prices");
warm.countDown();
await answer("/health", 0); // waits for nothing
warm.countDown(2);
await early;
await answer("/stock");

// Prints:
// 503 /health, 2 caches are still cold
// 200 /prices
// 200 /stock
