import { expectTypeOf } from "vitest";
import { Pool, type Lease } from "../index.ts";

const pool = new Pool(2, {
  create: () => Promise.resolve({ query: (text: string) => text.length }),
  destroy: (connection) => connection.query("bye"),
  validate: (connection) => connection.query("ping") > 0,
});

expectTypeOf(pool.acquire()).toEqualTypeOf<Promise<Lease<{ query: (text: string) => number }>>>();
expectTypeOf(pool.run((connection) => connection.query("1"))).toEqualTypeOf<Promise<number>>();
expectTypeOf(pool).toExtend<AsyncDisposable>();
expectTypeOf<Lease<number>>().toExtend<Disposable>();
// @ts-expect-error what the pool lends is what `create` makes
pool.invalidate("a string");
// @ts-expect-error nothing can be lent that nobody makes
void (() => new Pool(2, {}));
