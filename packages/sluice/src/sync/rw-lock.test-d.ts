import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import type { DeepReadonly, ReadGuard } from "./rw-lock-guard.ts";
import { RwLock } from "./rw-lock.ts";

interface Config {
  limit: number;
  readonly hosts: string[];
  readonly tags: Map<string, { on: boolean }>;
  readonly since: Date;
  readonly check: (host: string) => boolean;
}

declare const config: Config;
const lock = RwLock.of(config);

expectTypeOf(lock).toEqualTypeOf<RwLock<Config>>();
expectTypeOf(lock.readers).toExtend<Policy>();
expectTypeOf(lock.writers).toExtend<Policy>();
expectTypeOf(new RwLock().tryRead()).toEqualTypeOf<ReadGuard<undefined> | undefined>();
expectTypeOf(lock.readers.run(({ value }) => value.limit)).toEqualTypeOf<Promise<number>>();

void lock.readers.run(({ value }) => {
  expectTypeOf(value.hosts).toEqualTypeOf<readonly string[]>();
  expectTypeOf(value.tags).toEqualTypeOf<ReadonlyMap<string, { readonly on: boolean }>>();
  expectTypeOf(value.since).toEqualTypeOf<Date>();
  expectTypeOf(value.check).toEqualTypeOf<(host: string) => boolean>();
  // @ts-expect-error a reader changes nothing
  value.limit = 1;
  // @ts-expect-error a reader changes nothing
  value.hosts.push("a");
  // @ts-expect-error a reader changes nothing
  value.tags.set("a", { on: true });
});

void lock.writers.run(({ value, replace }) => {
  value.limit = 1;
  value.hosts.push("a");
  replace({ ...value, limit: 2 });
  // @ts-expect-error it guards a Config
  replace({ limit: 2 });
});

// @ts-expect-error there is no upgrade
void lock.tryRead()?.upgrade();
// @ts-expect-error a guard is not replaced through a read lock
void lock.tryRead()?.replace(config);

expectTypeOf<DeepReadonly<[number, { a: Set<string> }]>>().toEqualTypeOf<
  readonly [number, { readonly a: ReadonlySet<string> }]
>();
