/** First in, first out, in O(1) and 8 to 32 bytes an item: `Array.shift` moves all that are left. */
export class Ring<T> {
  // I1  the items are #slots[#head], …, #size of them, wrapping round; every other slot is undefined and keeps nothing alive
  // I2  #slots.length is a power of two, MIN at least, and at most 4 times #size above that
  #slots: (T | undefined)[] = emptySlots(MIN);
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The next item to leave. Undefined if there is none; `size` tells that from an undefined item. */
  peek(): T | undefined {
    return this.#slots[this.#head];
  }

  /** The one after the next. */
  get second(): T | undefined {
    return this.#size > 1 ? this.#slots[(this.#head + 1) & (this.#slots.length - 1)] : undefined;
  }

  push(item: T): void {
    if (this.#size === this.#slots.length) this.#resize(2 * this.#size);
    this.#slots[(this.#head + this.#size) & (this.#slots.length - 1)] = item;
    this.#size += 1;
  }

  /** Undefined if there is none; `size` tells that from an undefined item. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#size -= 1;
    // At a quarter, not at a half, where a push and a shift in turn would copy everything each time.
    if (4 * this.#size < this.#slots.length && this.#slots.length > MIN) this.#resize(this.#slots.length / 2);
    return item;
  }

  #resize(length: number): void {
    const slots = emptySlots<T>(length);
    for (let index = 0; index < this.#size; index += 1) {
      slots[index] = this.#slots[(this.#head + index) & (this.#slots.length - 1)];
    }
    this.#slots = slots;
    this.#head = 0;
  }
}

const MIN = 16;

function emptySlots<T>(length: number): (T | undefined)[] {
  const slots: (T | undefined)[] = [];
  slots.length = length;
  return slots.fill(undefined); // `Array.from` takes many times as long
}
