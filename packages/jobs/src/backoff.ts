/** Exponential, full jitter: anything below `min(maxMs, baseMs * 2^(attempt - 1))`, `attempt` being 1 for the first. */
export function backoffMs(
  attempt: number,
  { baseMs, maxMs }: { readonly baseMs: number; readonly maxMs: number },
  random: () => number,
): number {
  return random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1));
}
