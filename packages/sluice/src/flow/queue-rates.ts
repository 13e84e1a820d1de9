/** How fast two counts have grown of late. Costs nothing but when somebody looks. */
export class RateMeter {
  // I1  #from is older than #latest, or both are the beginning
  #from: Look;
  #latest: Look;

  constructor(at: number) {
    this.#from = this.#latest = { at, counts: [0, 0] };
  }

  /** For each second since the latest look that is a second old at least; so several may look. */
  look(at: number, ...counts: Counts): Counts {
    if (at - this.#latest.at >= 1_000) {
      this.#from = this.#latest;
      this.#latest = { at, counts };
    }
    const from = this.#from;
    const seconds = (at - from.at) / 1_000;
    const rate = (index: 0 | 1): number => (seconds > 0 ? (counts[index] - from.counts[index]) / seconds : 0);
    return [rate(0), rate(1)];
  }
}

type Counts = [number, number];

interface Look {
  readonly at: number;
  readonly counts: Counts;
}
