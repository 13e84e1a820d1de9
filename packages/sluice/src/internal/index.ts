/** What the other packages of this repository share with the core. No promise to anybody else: it changes freely. */
export { Heap, type HeapNode } from "./heap.ts";
