import { setImmediate as turn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { ClosedError } from "../errors.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { firstSuccess } from "./joiner.ts";
import { TaskGroup, taskGroup } from "./task-group.ts";
import { ended, outcomeOf } from "./task-group.stage.ts";

const failure = new Error("first");

it("waits at the end of its block for what it has joined, without cancelling", async () => {
  const group = new TaskGroup();
  const end = Promise.withResolvers<number>();
  const child = group.run(() => end.promise);
  void group.join();
  const disposed = outcomeOf(group[Symbol.asyncDispose]());
  await turn();
  expect([disposed.status, group.signal.aborted]).toEqual(["pending", false]);
  end.resolve(3);
  expect(await child).toBe(3);
  await turn();
  expect(disposed.status).toBe("fulfilled");
});

it("cancels at the end of its block what nobody has joined, and waits for it", async () => {
  const log: unknown[] = [];
  {
    await using group = new TaskGroup();
    void group.run(({ signal }) => ended(signal).catch((reason) => log.push(reason)));
  }
  expect(log).toEqual([expect.any(ClosedError)]);
});

it("leaves a block with the error of its body, though children fail while they are cancelled", async () => {
  const body = new Error("body");
  const late: unknown[] = [];
  const leave = async (): Promise<void> => {
    await using group = new TaskGroup({ onLateError: (error) => late.push(error) });
    void group.run(({ signal }) => ended(signal).catch(() => Promise.reject(failure)));
    throw body;
  };
  await expect(leave()).rejects.toBe(body);
  expect(late).toEqual([failure]);
});

it("F02.4: a failure that nobody has looked at surfaces at the end of the block, in the sink or as an unhandled rejection", async () => {
  const heard: unknown[] = [];
  const leave = async (onLateError?: (error: unknown) => void): Promise<void> => {
    await using group = new TaskGroup({ onLateError });
    void group.run(() => Promise.reject(failure));
    await turn();
  };
  expect(await unhandledIn(() => leave((error) => heard.push(error)))).toEqual([]);
  expect(heard).toEqual([failure]);
  expect(await unhandledIn(() => leave())).toEqual([failure]);
});

it("reports a failure once if its promise was looked at", async () => {
  const unhandled = await unhandledIn(async () => {
    const leave = async (): Promise<void> => {
      await using group = new TaskGroup();
      await group.run(() => Promise.reject(failure));
    };
    await expect(leave()).rejects.toBe(failure);
  });
  expect(unhandled).toEqual([]);
});

it("detaches work by name alone: counted, neither awaited nor cancelled, its failure in its own sink", async () => {
  const group = new TaskGroup();
  const end = Promise.withResolvers<void>();
  const heard: unknown[] = [];
  const signals: unknown[] = [];
  const { signal } = new AbortController();
  const work = (context: { signal: AbortSignal | undefined }): Promise<void> => {
    signals.push(context.signal);
    return end.promise;
  };
  const detached = group.detach(work, { onError: (error) => heard.push(error), signal });
  group.abort(failure);
  await expect(group.join()).rejects.toBe(failure);
  expect([group.stats().detached, signals, heard]).toEqual([1, [signal], []]);
  end.reject(new Error("later"));
  await detached;
  expect([group.stats().detached, heard]).toMatchObject([0, [{ message: "later" }]]);
});

it("refuses to detach without a sink, calls nothing, and rejects with what the sink throws", async () => {
  const group = new TaskGroup();
  const work = vi.fn<() => void>();
  await expect(group.detach(work, {} as never)).rejects.toThrow("onError must be a function, got undefined");
  await expect(group.detach(work, undefined as never)).rejects.toThrow("onError must be a function");
  expect(work).not.toHaveBeenCalled();
  const onError = (): never => {
    throw failure;
  };
  await expect(group.detach(() => Promise.reject(new Error("work")), { onError })).rejects.toBe(failure);
  expect(group.stats().detached).toBe(0);
});

it("as a function waits for the children and gives what its body returned", async () => {
  const log: string[] = [];
  const value = await taskGroup(async (group) => {
    void group.run(() => turn().then(() => log.push("child")));
    await Promise.resolve();
    log.push("body");
    return 7;
  });
  expect([value, log]).toEqual([7, ["body", "child"]]);
});

it("as a function cancels the children when its body throws, waits for them, and rejects with that", async () => {
  const log: unknown[] = [];
  const body = (group: TaskGroup): never => {
    void group.run(({ signal }) => ended(signal).catch((reason) => log.push(reason)));
    throw failure;
  };
  await expect(taskGroup(body)).rejects.toBe(failure);
  expect(log).toEqual([failure]);
});

it("as a function rejects with what failed first, and tells the sink of what its body threw for it", async () => {
  const wrapped = new Error("could not go on", { cause: failure });
  const late: unknown[] = [];
  const body = async (group: TaskGroup): Promise<void> => {
    void group.run(() => Promise.reject(failure));
    await ended(group.signal).catch(() => Promise.reject(wrapped));
  };
  await expect(taskGroup(body, { onLateError: (error) => late.push(error) })).rejects.toBe(failure);
  expect(late).toEqual([wrapped]);
});

it("as a function rejects with what its body threw though the joiner has what it wants", async () => {
  const body = async (group: TaskGroup<number, number>): Promise<void> => {
    await group.run(() => 1);
    throw failure;
  };
  await expect(taskGroup(body, { joiner: firstSuccess<number>() })).rejects.toBe(failure);
});
