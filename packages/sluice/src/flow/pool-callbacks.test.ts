import { expect, it, vi } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Pool } from "./pool.ts";

it("serves who waits though onError throws, whatever it is told of, and its error is an unhandled rejection", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const thrown = new Error("of onError");
  const onError = (): never => {
    throw thrown;
  };
  const unfit = new Pool(1, { create: () => "one", validate: () => fail("unfit"), onError });
  (await unfit.acquire()).release();
  (await unfit.acquire()).release();
  await unfit.close();

  const making: PromiseWithResolvers<string>[] = [];
  const create = (): Promise<string> => {
    making.push(Promise.withResolvers());
    return making.at(-1)?.promise ?? fail("none");
  };
  const broken = new Pool(1, { create, destroy: () => fail("undying"), onError });
  const gone = new AbortController();
  const left = broken.acquire({ signal: gone.signal });
  gone.abort();
  await expect(left).rejects.toBe(gone.signal.reason);
  const next = broken.acquire();
  making[0]?.reject(new Error("of a create for nobody"));
  await turn();
  making[1]?.resolve("two");
  (await next).release();
  await broken.close();

  await turn();
  process.off("unhandledRejection", unhandled);
  expect(unhandled.mock.calls.map(([error]) => error)).toEqual([thrown, thrown, thrown]);
});

it("lends nothing that its validate has closed the pool over, or condemned", async () => {
  const gone: string[] = [];
  let made = 0;
  let act: ((resource: string) => unknown) | undefined;
  const pool: Pool<string> = new Pool(2, {
    create: () => `number ${(made += 1)}`,
    destroy: (resource) => gone.push(resource),
    validate(resource) {
      act?.(resource);
      return true;
    },
  });
  (await pool.acquire()).release();
  act = (resource) => pool.invalidate(resource);
  expect([pool.tryAcquire(), gone]).toEqual([undefined, ["number 1"]]);
  (await pool.acquire()).release();
  act = () => pool.close();
  await expect(pool.acquire()).rejects.toMatchObject({ code: "CLOSED" });
  expect([pool.size, gone]).toEqual([0, ["number 1", "number 2"]]);
});

it("leaves no caller in line whose signal its validate has aborted, so that others are served", async () => {
  let made = 0;
  const controller = new AbortController();
  const pool = new Pool(1, {
    create: () => (made += 1),
    validate() {
      controller.abort(new Error("enough"));
      return false;
    },
  });
  (await pool.acquire()).release();
  await expect(pool.acquire({ signal: controller.signal })).rejects.toThrow("enough");
  expect([pool.waiting, (await pool.acquire()).resource]).toEqual([0, 2]);
});

it("makes no more than max though its validate asks for another", async () => {
  let made = 0;
  const within: Promise<unknown>[] = [];
  const pool: Pool<number> = new Pool(1, {
    create: () => (made += 1),
    validate() {
      if (within.length === 0) within.push(pool.run((number) => number));
      return true;
    },
  });
  (await pool.acquire()).release();
  const lease = await pool.acquire();
  expect([made, pool.size, pool.waiting]).toEqual([1, 1, 1]);
  lease.release();
  expect(await within[0]).toBe(1);
});

it("serves who waits though its clock throws, whose errors are unhandled rejections", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const failure = new Error("of the clock");
  let fails = false;
  const clock = new VirtualClock();
  const broken: Clock = {
    now: () => (fails ? throwIt() : clock.now()),
    wallNow: () => 0,
    track: (work) => work,
    setTimer: (delayMs, task, options) => (fails ? throwIt() : clock.setTimer(delayMs, task, options)),
  };
  const throwIt = (): never => {
    throw failure;
  };
  let made = 0;
  const pool = new Pool(1, { create: () => (made += 1), validate: () => true, idleMs: 100, clock: broken });
  const [first, second] = [pool.acquire(), pool.acquire()];
  fails = true;
  (await first).release(); // made, given back and lent without a reading or a timer
  (await second).release();
  expect([pool.idle, pool.size, pool.waiting]).toEqual([1, 1, 0]);
  fails = false;
  (await pool.acquire()).release();
  await clock.advance(100);
  expect([made, pool.size]).toEqual([1, 0]); // and swept away when it is time, by the next timer
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(new Set(unhandled.mock.calls.map(([error]) => error))).toEqual(new Set([failure]));
});

function fail(message: string): never {
  throw new Error(message);
}
