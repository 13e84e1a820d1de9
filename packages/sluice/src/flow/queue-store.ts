/** Where a queue keeps its items, and in which order they leave. `E` is what is kept of a put. */
export interface QueueStore<T, I, E = unknown> {
  readonly size: number;
  /** When the oldest item was brought, or a later instant; undefined if there is none. */
  readonly oldestAt: number | undefined;
  /** Whether an item may leave now. */
  readonly isReady: boolean;
  /** Throws for bad options. */
  enter(item: T, options: I | undefined): E;
  itemOf(entry: E): T;
  /** Of whoever waits to bring it. */
  priorityOf(entry: E): number;
  /** `broughtAt` is known of what had to wait for room. */
  add(entry: E, broughtAt?: number): void;
  /** The next item to leave. Only if one is ready. */
  peek(): T;
  shift(): T;
  /** Takes out the least loss, `entry` itself included: undefined if it is that. */
  evict(entry: E): { readonly item: T } | undefined;
  /** Takes out everything, in the order in which it would have left. */
  clear(): T[];
  /** Only where items ripen: `onReady` has been called whenever one has, while somebody waits for it. */
  expect?(isAwaited: boolean): void;
}
