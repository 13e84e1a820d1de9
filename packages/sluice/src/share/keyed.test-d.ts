import { expectTypeOf } from "vitest";
import { Semaphore } from "../sync/semaphore.ts";
import { Keyed } from "./keyed.ts";

declare const keyed: Keyed<number>;

expectTypeOf(keyed.run(1, () => "a")).toEqualTypeOf<Promise<string>>();
expectTypeOf(new Keyed((key: { readonly id: string }) => new Semaphore(key.id.length))).toEqualTypeOf<
  Keyed<{ readonly id: string }>
>();
// @ts-expect-error a key is of the type that was named
void keyed.run("1", () => "a");
