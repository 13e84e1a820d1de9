/**
 * Which entry a full cache gives up: SIEVE (Zhang et al., NSDI 2024) with the probation and the ghosts of S3-FIFO (Yang
 * et al., SOSP 2023). What is new is on probation, a tenth of all: unless it is used there, it goes before what has
 * proven itself, so that a scan passes through. A use sets a bit and moves nothing. `docs/design/0026` has the figures.
 */

/** An entry's place among the others. */
export class SieveNode<K> {
  // Only `Sieve` writes these, but for `isUsed`.
  older: SieveNode<K> = this;
  newer: SieveNode<K> = this;
  isYoung = false;
  weight = 0;
  /** Set by whoever uses it. */
  isUsed = false;
  readonly key: K;

  constructor(key: K) {
    this.key = key;
  }
}

export class Sieve<K, N extends SieveNode<K>> {
  // I1  a node is in the ring, where each is newer than the one before, exactly while it is in `nodes`
  // I2  #youngs nodes are young, all of them newer than #youngHand; `weight` is the sum over all nodes
  // I3  no key is both in `nodes` and among the ghosts, of which there are at most twice as many as there were nodes
  readonly nodes: Map<K, N> = new Map();
  weight = 0;
  /** No node, but where the ends of the ring meet. */
  readonly #end = new SieveNode<unknown>(undefined) as N;
  // Each hand is at the node that it looked at last.
  #hand = this.#end;
  #youngHand = this.#end;
  #youngs = 0;
  /** Keys that failed their probation lately. There are two generations, of which the older goes as a whole. */
  #ghosts = new Set<K>();
  #olderGhosts = new Set<K>();

  /**
   * With the standing of the one `before` it, which was removed, of the same key. Else who comes back soon after it had
   * to go need not prove itself again.
   */
  add(node: N, weight: number, before?: N): void {
    const { key } = node;
    node.isUsed = before?.isUsed ?? false;
    node.isYoung = before?.isYoung ?? !(this.#ghosts.delete(key) || this.#olderGhosts.delete(key));
    if (node.isYoung) this.#youngs += 1;
    this.nodes.set(key, node);
    this.weight += node.weight = weight;
    node.newer = this.#end;
    node.older = this.#end.older;
    node.older.newer = this.#end.older = node;
  }

  /** For a node that is in. */
  remove(node: N): void {
    this.nodes.delete(node.key);
    this.weight -= node.weight;
    if (node.isYoung) this.#youngs -= 1;
    if (this.#hand === node) this.#hand = node.older as N;
    if (this.#youngHand === node) this.#youngHand = node.older as N;
    node.older.newer = node.newer;
    node.newer.older = node.older;
  }

  /** The one that is to go, of those that there are; whoever asks must remove it. */
  pick(): N {
    for (;;) {
      const isTrial = this.#youngs * TRIAL_SHARE > this.nodes.size;
      const node = (isTrial ? this.#youngHand : this.#hand).newer as N;
      if (isTrial) this.#youngHand = node;
      else this.#hand = node;
      if (node === this.#end || node.isYoung !== isTrial) continue;
      if (!node.isUsed) {
        if (isTrial) this.#ghosts.add(node.key);
        if (this.#ghosts.size > this.nodes.size) {
          this.#olderGhosts = this.#ghosts;
          this.#ghosts = new Set();
        }
        return node;
      }
      if (isTrial) {
        node.isYoung = false; // but used still: it has a round more than others to prove itself
        this.#youngs -= 1;
      } else node.isUsed = false;
    }
  }
}

/** One in ten is on probation. */
const TRIAL_SHARE = 10;
