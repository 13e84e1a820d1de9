/**
 * Which entry a full cache gives up: SIEVE (Zhang et al., NSDI 2024) with the probation and the ghosts of S3-FIFO (Yang
 * et al., SOSP 2023). What is new is on probation, a tenth of all: unless it is used there, it goes before what has
 * proven itself, so that a scan passes through. A use sets a bit and moves nothing. `docs/design/0026` has the figures.
 */
import { append, type Linked, unlink } from "./linked.ts";

/** An entry's place among the others. */
export class SieveNode implements Linked {
  // Only `Sieve` writes these, but for `isUsed`.
  older: Linked = this;
  newer: Linked = this;
  isYoung = false;
  weight = 0;
  /** Set by whoever uses it. */
  isUsed = false;
  readonly key: unknown;

  constructor(key: unknown) {
    this.key = key;
  }
}

export class Sieve<N extends SieveNode = SieveNode> {
  // I1  `size` nodes are in the list, each newer than the one before
  // I2  #youngs nodes are young, all of them newer than #youngHand; `weight` is the sum over all nodes
  // I3  no node's key is among the ghosts, of which there are at most twice as many as there were nodes
  size = 0;
  weight = 0;
  readonly #end = new SieveNode(undefined) as N;
  // Each hand is at the node that it looked at last.
  #hand = this.#end;
  #youngHand = this.#end;
  #youngs = 0;
  /** Keys that failed their probation lately. There are two generations, of which the older goes as a whole. */
  #ghosts = new Set<unknown>();
  #olderGhosts = new Set<unknown>();

  /**
   * With the standing of the one `before` it, of the same key, which was removed: this node itself, maybe. Else who comes
   * back soon after it had to go need not prove itself again.
   */
  add(node: N, weight: number, before?: N): void {
    const { key } = node;
    node.isUsed = before?.isUsed ?? false;
    node.isYoung = before?.isYoung ?? !(this.#ghosts.delete(key) || this.#olderGhosts.delete(key));
    if (node.isYoung) this.#youngs += 1;
    this.size += 1;
    this.weight += node.weight = weight;
    append(node, this.#end);
  }

  /** For a node that is in. */
  remove(node: N): void {
    this.size -= 1;
    this.weight -= node.weight;
    if (node.isYoung) this.#youngs -= 1;
    if (this.#hand === node) this.#hand = node.older as N;
    if (this.#youngHand === node) this.#youngHand = node.older as N;
    unlink(node);
  }

  /** The one that is to go, of those that there are; whoever asks must remove it. */
  pick(): N {
    for (;;) {
      const isTrial = this.#youngs * TRIAL_SHARE > this.size;
      const node = (isTrial ? this.#youngHand : this.#hand).newer as N;
      if (isTrial) this.#youngHand = node;
      else this.#hand = node;
      if (node === this.#end || node.isYoung !== isTrial) continue;
      if (!node.isUsed) {
        if (isTrial) this.#ghosts.add(node.key);
        if (this.#ghosts.size > this.size) {
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
