// The mail server is down. After two failures nobody waits for it any more, until a trial finds it up again.
import { CircuitBreaker, CircuitOpenError, sleep } from "sluice";

const breaker = new CircuitBreaker({
  failures: 2,
  cooldownMs: 250,
  onStateChange: ({ from, to }) => console.log(`${from} > ${to}`),
});

let isUp = false;
async function send(): Promise<void> {
  try {
    await breaker.run(() => {
      if (!isUp) throw new Error("connection refused");
    });
    console.log("sent");
  } catch (error) {
    console.log(error instanceof CircuitOpenError ? "not tried" : String(error));
  }
}

for (let call = 0; call < 4; call += 1) await send();
isUp = true;
await sleep(260);
for (let call = 0; call < 2; call += 1) await send();

// Prints:
// Error: connection refused
// closed > open
// Error: connection refused
// not tried
// not tried
// open > half-open
// half-open > closed
// sent
// sent
