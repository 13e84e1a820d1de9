/** The end of a turn of the event loop: when all promise reactions have run that it led to, also those of reactions. */
interface Runtime {
  readonly process?: { readonly nextTick?: ((fn: () => void) => void) | undefined } | undefined;
}

/**
 * Returns how to ask for a call of `fn` at the end of this turn. In Node it is called in the async context of who made
 * this, whoever asks: the reaction that calls it is made here, each time by the one before.
 */
export function turnEnd(fn: () => void): () => void {
  let ask: (() => void) | undefined;
  const rest = (): void => {
    const asked = new Promise<void>((resolve) => (ask = resolve));
    void asked.then(() => {
      rest();
      return atTurnEnd(fn);
    });
  };
  rest();
  return () => ask?.();
}

function atTurnEnd(fn: () => void): void {
  const nextTick = (globalThis as Runtime).process?.nextTick;
  if (nextTick !== undefined) return nextTick(fn);
  const { port1, port2 } = new MessageChannel(); // the one way that every runtime has and none delays
  port1.addEventListener("message", () => {
    port1.close();
    fn();
  });
  port1.start();
  port2.postMessage(0);
}
