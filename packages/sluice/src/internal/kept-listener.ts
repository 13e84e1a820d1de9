/**
 * A listener that calls which follow each other on one signal can have one after the other: to add one and remove it
 * takes several times what a quick call does. It keeps its own place among the watchers for the turns in which a next
 * call may come. Only the signal that asked first has that, until it has been quiet: a loop of calls is on one signal,
 * and many signals would only fill the queue of microtasks.
 */
import { Watcher } from "./abort.ts";
import { LINGER_TURNS, Lingering } from "./lingering.ts";

/** As `unwatch`, but leaves the signal's listener to the next for a moment. */
export function unwatchSoon(watcher: Watcher): void {
  const signal = watcher.watchers?.signal;
  if (signal !== undefined && (kept === undefined || kept.signal === signal)) {
    kept ??= new KeptListener(signal);
    kept.rest(LINGER_TURNS);
  }
  watcher.unwatch();
}

class KeptListener extends Lingering {
  readonly signal: AbortSignal;
  readonly #place = new Place();

  constructor(signal: AbortSignal) {
    super();
    this.signal = signal;
    this.#place.watch(signal);
  }

  override get isIdle(): boolean {
    return true; // whoever came meanwhile has a place of their own
  }

  override close(): void {
    this.#place.unwatch();
    kept = undefined;
  }
}

class Place extends Watcher {
  override onAbort(): void {} // its signal has no more listeners then; it goes when its turns are over
}

let kept: KeptListener | undefined;
