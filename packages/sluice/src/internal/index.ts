/** What the other packages of this repository share with the core. No promise to anybody else: it changes freely. */
export { checkInteger, checkMs, checkSignal, checkWait } from "./check.ts";
export { Heap, type HeapNode } from "./heap.ts";
export { register } from "./names.ts";
export { systemRandom } from "./random.ts";
export { grantAll, WaitList } from "./wait-list.ts";
