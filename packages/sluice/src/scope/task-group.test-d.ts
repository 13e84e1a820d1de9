import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { collectAll, firstSuccess, quorum, settleAll, type TaskOutcome } from "./joiner.ts";
import { TaskGroup, taskGroup } from "./task-group.ts";

expectTypeOf(new TaskGroup()).toExtend<Policy>();
expectTypeOf(new TaskGroup().run(() => 1)).toEqualTypeOf<Promise<number>>();
expectTypeOf(new TaskGroup().run(({ signal }) => signal)).toEqualTypeOf<Promise<AbortSignal>>();
expectTypeOf(new TaskGroup().join()).toEqualTypeOf<Promise<void>>();
expectTypeOf(new TaskGroup({ joiner: firstSuccess<string>() }).join()).toEqualTypeOf<Promise<string>>();
expectTypeOf(new TaskGroup({ joiner: quorum<string>(2) }).join()).toEqualTypeOf<Promise<string[]>>();
expectTypeOf(new TaskGroup({ joiner: collectAll<string>() }).join()).toEqualTypeOf<Promise<string[]>>();
expectTypeOf(new TaskGroup({ joiner: settleAll<string>() }).join()).toEqualTypeOf<Promise<TaskOutcome<string>[]>>();
expectTypeOf(taskGroup((group) => group.run(() => 1))).toEqualTypeOf<Promise<number>>();
// @ts-expect-error its children give strings
void new TaskGroup({ joiner: firstSuccess<string>() }).run(() => 1);
// @ts-expect-error detached work needs a sink for its error
void new TaskGroup().detach(() => 1, {});
