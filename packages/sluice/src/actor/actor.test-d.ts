import { expectTypeOf } from "vitest";
import { Actor } from "./actor.ts";
import type { ActorContext, Setup } from "./actor-options.ts";
import { KeyedActors } from "./keyed-actors.ts";

const counter = new Actor<number, string>(1, () => (n) => {
  expectTypeOf(n).toEqualTypeOf<number>();
  return String(n);
});

expectTypeOf(counter.ask(1)).toEqualTypeOf<Promise<string>>();
expectTypeOf(counter.tell(1)).toEqualTypeOf<Promise<boolean>>();
expectTypeOf(counter.tryTell(1)).toEqualTypeOf<boolean>();
expectTypeOf(counter).toExtend<AsyncDisposable>();
// @ts-expect-error no such message
void counter.tell("1");
// @ts-expect-error a mailbox has a bound
void new Actor<number>(() => () => {});
// @ts-expect-error a duration is a number of milliseconds
void counter.ask(1, { timeoutMs: "5s" });

// An actor that takes more may stand for one that takes less.
expectTypeOf<Actor<number | string, "a">>().toExtend<Actor<number, string>>();
expectTypeOf<Actor<number>>().not.toExtend<Actor<number | string>>();

expectTypeOf<Setup<number, string>>().toBeCallableWith({} as ActorContext<number, string>);
void new Actor<number, string>(1, async ({ self, spawn, signal }) => {
  expectTypeOf(self).toEqualTypeOf<Actor<number, string>>();
  expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
  expectTypeOf(spawn<boolean, Date>(1, () => () => new Date(0))).toEqualTypeOf<Actor<boolean, Date>>();
  return { receive: async (n) => String(n), retire: () => {} };
});

const accounts = new KeyedActors<bigint, number, string>(1, (key) => {
  expectTypeOf(key).toEqualTypeOf<bigint>();
  return String;
});
expectTypeOf(accounts.ask(1n, 2)).toEqualTypeOf<Promise<string>>();
