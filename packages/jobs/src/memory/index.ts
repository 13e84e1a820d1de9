export { MemoryStore, type MemoryStoreOptions } from "./memory-store.ts";
