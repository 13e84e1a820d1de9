/** Reads request bodies, each up to a bound and all together up to another, counting while they arrive. */

export interface BodyBounds {
  readonly maxBytes: number;
  /** Of all that are held at once. */
  readonly maxTotalBytes: number;
}

export type Body =
  | { readonly bytes: Uint8Array }
  | { readonly refusal: "too-large" }
  | { readonly refusal: "too-many" }
  | { readonly refusal: "broken"; readonly error: unknown };

export class Bodies {
  // I1  #held is the sum of what the calls of `use` under way have read
  readonly #bounds: BodyBounds;
  #held = 0;

  constructor(bounds: BodyBounds) {
    this.#bounds = bounds;
  }

  /** Bytes. */
  get held(): number {
    return this.#held;
  }

  /** Calls `fn` with the whole body, or with why it was not read to its end. */
  async use<T>(request: Request, fn: (body: Body) => Promise<T>): Promise<T> {
    if (Number(request.headers.get("content-length") ?? 0) > this.#bounds.maxBytes) return fn({ refusal: "too-large" });
    const reading = { bytes: 0 };
    try {
      return await fn(await this.#read(request, reading));
    } finally {
      this.#held -= reading.bytes;
    }
  }

  async #read({ body }: Request, reading: { bytes: number }): Promise<Body> {
    const { maxBytes, maxTotalBytes } = this.#bounds;
    const chunks: Uint8Array[] = [];
    try {
      for await (const chunk of body ?? []) {
        reading.bytes += chunk.byteLength;
        this.#held += chunk.byteLength;
        if (reading.bytes > maxBytes) return { refusal: "too-large" };
        if (this.#held > maxTotalBytes) return { refusal: "too-many" };
        chunks.push(chunk);
      }
    } catch (error) {
      return { refusal: "broken", error };
    }
    return { bytes: Buffer.concat(chunks) };
  }
}
