/**
 * A stand-in for `Math.random` that gives the same numbers for the same seed: sfc32, 128 bits of state, by Chris
 * Doty-Humphrey (PractRand, https://pracrand.sourceforge.net), seeded as there. Not for secrets.
 */
export function seededRandom(seed: number): () => number {
  if (!Number.isSafeInteger(seed)) throw new RangeError(`seed must be a safe integer, got ${seed}`);
  let [a, b, c, counter] = [0, seed | 0, Math.floor(seed / 2 ** 32) | 0, 1];
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let round = 0; round < 12; round += 1) next(); // until the seed has reached all of the state
  return next;
}
