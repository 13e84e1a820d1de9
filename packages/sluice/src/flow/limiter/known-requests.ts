/** Those in line that were given an `id`, by which they are found again. */
import type { Request } from "./request.ts";

export class KnownRequests {
  // I1  no set is empty
  readonly #byId = new Map<unknown, Set<Request>>();

  /** Those of now, in the order in which they came. */
  withId(id: unknown): readonly Request[] {
    return [...(this.#byId.get(id) ?? [])];
  }

  add(request: Request): void {
    if (request.id === undefined) return;
    const others = this.#byId.get(request.id) ?? new Set();
    this.#byId.set(request.id, others.add(request));
  }

  delete(request: Request): void {
    const others = this.#byId.get(request.id);
    if (others?.delete(request) === true && others.size === 0) this.#byId.delete(request.id);
  }
}
