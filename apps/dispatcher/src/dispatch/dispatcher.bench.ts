// The whole way of an event but for the network: intake with full durability, rules, limits, intent, rendering, outcome
// and history on a real file, with providers in this process. 100,000 events to 20,000 users over both channels, the
// users' limit out of the way. Memory is what is left after garbage collection once all that was accepted has ended.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { parseConfig } from "../config/parse.ts";
import { sinkChannel } from "../inbox/sink-channel.ts";
import { acceptPatiently } from "../intake/lines.ts";
import type { Event } from "../model.ts";
import { Dispatcher } from "./dispatcher.ts";

const { values: options } = parseArgs({
  options: { json: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
});
const USERS = options.quick ? 200 : 20_000;
/** Memory is weighed after each of these many events. */
const MARKS = options.quick ? [200, 1_000] : [20_000, 100_000];
/** As a sender does that posts batches over four connections. */
const SENDERS = 4;
const BATCH = 100;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const channels = [sinkChannel("email"), sinkChannel("webhook")];
const config = parseConfig(
  {
    users: Array.from({ length: USERS }, (_, n) => ({
      id: `user-${n}`,
      email: `user-${n}@example.com`,
      webhook: {
        url: `https://example.com/hooks/${n}`,
        secret: `whsec_${Buffer.alloc(24, n % 256).toString("base64")}`,
      },
      repositories: [`repository-${n}`],
    })),
    rules: [
      {
        name: "followers",
        to: { followersOf: "repository" },
        channels: ["email", "webhook"],
        template: "change",
      },
    ],
    templates: {
      change: {
        email: { subject: "Change in {{ data.repository }}", text: "{{ data.title }}, by {{ data.author }}" },
        webhook: { body: '{"repository":"{{ data.repository }}","title":"{{ data.title }}"}' },
      },
    },
    limits: { perUser: { count: 1_000_000_000, perMs: 1 } },
  },
  channels,
);

const folder = mkdtempSync(join(tmpdir(), "dispatcher-bench-"));
try {
  const file = join(folder, "dispatcher.sqlite");
  const dispatcher = await Dispatcher.open({ file, config, channels, log: pino({ level: "silent" }) });
  dispatcher.start();
  const memoryBytes: number[] = [];
  let durationMs = 0;
  let accepted = 0;
  for (const mark of MARKS) {
    const from = performance.now();
    await feed(dispatcher, accepted, mark);
    await dispatcher.whenIdle(0);
    durationMs += performance.now() - from;
    accepted = mark;
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    memoryBytes.push(heapUsed + external);
  }
  const delivered = channels.reduce((sum, channel) => sum + channel.stats().sent, 0);
  if (delivered !== 2 * accepted) throw new Error(`${delivered} notifications were delivered, not ${2 * accepted}`);
  await dispatcher.stop();
  report(accepted, delivered, durationMs, memoryBytes);
} finally {
  rmSync(folder, { recursive: true });
}

async function feed(dispatcher: Dispatcher, from: number, to: number): Promise<void> {
  let next = from;
  const send = async (): Promise<void> => {
    while (next < to) {
      const first = next;
      next = Math.min(to, next + BATCH);
      const batch = Array.from({ length: next - first }, (_, index) => eventOf(first + index));
      await acceptPatiently(batch, { sink: dispatcher.journal });
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, send));
}

function eventOf(n: number): Event {
  const data = { repository: `repository-${n % USERS}`, title: `Change number ${n}`, author: "somebody", files: 3 };
  return { id: `${n}`, source: "/bench", type: "bench.change", data };
}

function report(events: number, notifications: number, durationMs: number, memoryBytes: readonly number[]): void {
  const perSecond = (count: number): number => Math.round((count * 1_000) / durationMs);
  const [early = Number.NaN, late = Number.NaN] = memoryBytes;
  const row = {
    bench: "dispatcher",
    events,
    notifications,
    eventsPerSecond: perSecond(events),
    notificationsPerSecond: perSecond(notifications),
    memoryBytes,
    memoryRatio: Number((late / early).toFixed(3)),
  };
  const megabytes = memoryBytes.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(" and ");
  const line = options.quick
    ? "dispatcher: ran"
    : `dispatcher: ${row.eventsPerSecond} events/s, ${row.notificationsPerSecond} notifications/s, ` +
      `${megabytes} MiB after ${MARKS.join(" and ")} events (${row.memoryRatio} ×)`;
  if (options.json) console.error(line);
  else console.log(line);
  if (options.json) console.log(JSON.stringify([row]));
}
