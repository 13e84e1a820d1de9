export type MakeLimiter = typeof makeLimiter;

export function makeLimiter(limit: number): <R>(fn: () => Promise<R>) => Promise<R> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (fn) => {
    if (running < limit) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve)); // what it waits for is the slot itself
    try {
      return await fn();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next(); // handed over: the count stays, so a newcomer finds no room
    }
  };
}
