import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { RunCounts } from "../dispatch/run-counts.ts";
import type { NotificationStatus } from "../model.ts";
import { Progress } from "./progress.ts";

function watch(isTTY: boolean) {
  const clock = new VirtualClock();
  const counts = new RunCounts();
  const written: string[] = [];
  const email = new Map<NotificationStatus, number>([["queued", 12]]);
  const source = { counts, standing: () => ({ waiting: 3, notifications: new Map([["email", email]]) }) };
  const progress = new Progress({ write: (text) => written.push(text), isTTY }, source, clock);
  return { clock, counts, email, written, progress };
}

it("draws one block over itself on a terminal, when something has changed", async () => {
  const { clock, counts, email, written, progress } = watch(true);
  progress.start();
  await clock.advance(1_000);
  expect(written).toEqual([
    [
      "0 events accepted, 3 waiting to be expanded",
      "                 queued    sending  delivered   deferred    dropped       dead",
      "  email              12          0          0          0          0          0",
      "",
    ].join("\n"),
  ]);
  counts.events = 1;
  email.set("queued", 11);
  await clock.advance(100);
  expect(written).toHaveLength(2);
  expect(written[1]?.startsWith("\x1b[3A\x1b[J1 events accepted")).toBe(true);
  progress.stop();
  expect(written).toHaveLength(2);
  expect(clock.timers).toBe(0);
});

it("puts lines of others above the block", async () => {
  const { clock, written, progress } = watch(true);
  progress.note("before");
  progress.start();
  await clock.advance(100);
  progress.note("line 3 is refused");
  progress.stop();
  progress.note("after");
  expect(written[0]).toBe("before\n");
  expect(written[2]).toBe("\x1b[3A\x1b[Jline 3 is refused\n");
  expect(written[3]).toBe(written[1]);
  expect(written.slice(4)).toEqual(["after\n"]);
});

it("writes a line now and then where there is no terminal", async () => {
  const { clock, counts, written, progress } = watch(false);
  progress.start();
  progress.start();
  await clock.advance(1_999);
  expect(written).toEqual([]);
  await clock.advance(1);
  counts.moved("email", { from: undefined, to: "delivered", reason: undefined });
  progress.stop();
  progress.stop();
  expect(written).toEqual([
    "0 events (3 waiting), 12 to send, 0 delivered, 0 deferred, 0 dropped, 0 dead\n",
    "0 events (3 waiting), 12 to send, 1 delivered, 0 deferred, 0 dropped, 0 dead\n",
  ]);
  expect(clock.timers).toBe(0);
});
