/** Layouts that outlive their instances. */
const models: unknown[] = [];

/**
 * Keeps one instance of a class for good. A full garbage collection forgets the layout of instances of which none is
 * left, and with it the code that was optimized for them: without it a load of a cache takes a third as long again.
 */
export function keepModel(model: object): void {
  models.push(model);
}
