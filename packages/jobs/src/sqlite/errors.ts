/** Another process has kept the file locked. Nothing has changed, and the operation may be tried again. */
export class StoreBusyError extends Error {
  override readonly name = "StoreBusyError";
  readonly code = "STORE_BUSY";
  readonly waitedMs: number;

  constructor(waitedMs: number) {
    super(`others have kept the file locked for ${waitedMs} ms`);
    this.waitedMs = waitedMs;
  }
}

/** The file can't be used as a store, or was removed or replaced while it was one: then the store has to be opened anew. */
export class StoreOpenError extends Error {
  override readonly name = "StoreOpenError";
  readonly code = "STORE_OPEN";
  readonly path: string;
  readonly reason: string;

  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(`can't use ${path} as a store: ${reason}`, options);
    this.path = path;
    this.reason = reason;
  }
}

/** The thread that writes has died. What was under way may be done or not; the store takes nothing more. */
export class StoreFailedError extends Error {
  override readonly name = "StoreFailedError";
  readonly code = "STORE_FAILED";

  constructor(reason: string, options?: ErrorOptions) {
    super(`the store's thread has died: ${reason}`, options);
  }
}
