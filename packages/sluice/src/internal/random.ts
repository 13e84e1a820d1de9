/** Chance as the library sees it: a number in [0, 1). Whatever leaves something to chance takes one, to be seeded. */
export type Random = () => number;

/** The runtime's own. The one place in the library where it may be used. */
export const systemRandom: Random = Math.random;
