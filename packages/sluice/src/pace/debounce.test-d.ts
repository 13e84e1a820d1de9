import { expectTypeOf } from "vitest";
import { debounceAsync } from "./debounce-async.ts";
import { debounce } from "./debounce.ts";
import { keyedDebounce } from "./keyed-debounce.ts";
import { latest } from "./latest.ts";
import { throttle } from "./throttle.ts";

interface Editor {
  readonly id: number;
}

const save = debounce(function (this: Editor, text: string, force?: boolean) {
  return force === true ? text.length : this.id;
}, 100);
expectTypeOf(save).parameters.toEqualTypeOf<[text: string, force?: boolean | undefined]>();
expectTypeOf(save).returns.toEqualTypeOf<number | undefined>();
expectTypeOf(save).thisParameter.toEqualTypeOf<Editor>();
expectTypeOf(save.flush()).toEqualTypeOf<number | undefined>();
// @ts-expect-error it wants an Editor as this
void (() => save("text"));
// @ts-expect-error a text is a string
void ((editor: Editor) => save.call(editor, 1));

const show = throttle((done: number) => `${done} %`, 100);
expectTypeOf(show(1)).toEqualTypeOf<string | undefined>();

const ask = debounceAsync((text: string) => Promise.resolve(text.length), 100);
expectTypeOf(ask("text")).toEqualTypeOf<Promise<number>>();
expectTypeOf(ask.flush()).toEqualTypeOf<Promise<number | undefined>>();

const find = latest(({ signal }, text: string) => (signal.aborted ? "" : text));
expectTypeOf(find).parameters.toEqualTypeOf<[text: string]>();
expectTypeOf(find("text")).toEqualTypeOf<Promise<string>>();

const keyed = keyedDebounce((id: number, text: string) => `${id} ${text}`, 100, { key: (id) => id });
expectTypeOf(keyed(1, "text")).toEqualTypeOf<string | undefined>();
expectTypeOf(keyed["pending"]).parameters.toEqualTypeOf<[key?: number | undefined]>();
expectTypeOf(keyed.flush(1)).toEqualTypeOf<string | undefined>();
expectTypeOf(keyed.flush()).toEqualTypeOf<(string | undefined)[]>();
// @ts-expect-error a key is a number
void (() => keyed.cancel("1"));
