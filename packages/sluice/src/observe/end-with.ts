/** Calls `onEnd` when what `fn` returned has settled. A thenable is asked once, as whoever awaits it would. */
export function endWith<T>(onEnd: () => void, fn: () => T | PromiseLike<T>): T | PromiseLike<T> {
  let isOpen = false;
  try {
    const result = fn();
    if (typeof (result as PromiseLike<T> | undefined)?.then !== "function") return result;
    isOpen = true;
    return Promise.resolve(result).finally(onEnd);
  } finally {
    if (!isOpen) onEnd();
  }
}
