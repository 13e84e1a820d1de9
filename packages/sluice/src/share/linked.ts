/** A list that is a ring: it begins and ends at a node that stands for neither. What is in it is its own node. */
export interface Linked {
  // Only `append`, `unlink` and `Sieve` write these.
  older: Linked;
  newer: Linked;
}

/** As the newest of the list that ends at `end`. */
export function append(node: Linked, end: Linked): void {
  node.newer = end;
  node.older = end.older;
  node.older.newer = end.older = node;
}

export function unlink({ older, newer }: Linked): void {
  older.newer = newer;
  newer.older = older;
}

/** Where a list begins and ends. */
export class ListEnd implements Linked {
  older: Linked = this;
  newer: Linked = this;
}
