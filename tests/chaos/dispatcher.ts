// npm run chaos -- dispatcher [--kills N] [--seed S] [--json]: a numbered stream of events is fed to the dispatcher over
// HTTP while it is killed with SIGKILL again and again, by turns in the middle of intake, claim, send and settle, and
// started anew, and while the inbox misbehaves. Then the books are compared: fails if anything was lost or settled twice.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { seededRandom } from "sluice/testing";
import { drillConfig } from "./dispatcher/config.ts";
import { Feed } from "./dispatcher/feed.ts";
import { freePort, startDispatcher, startInbox, type Aim } from "./dispatcher/processes.ts";
import { judge, unfinished, type Verdict } from "./dispatcher/verdict.ts";

/** The file of the dispatcher within its data folder. */
const DATABASE = "dispatcher.sqlite";
const PHASES = ["intake", "claim", "send", "settle"] as const;
const MISBEHAVIOUR = "slow=0.05:300,4xx=0.03,5xx=0.02,drop=0.03,lose=0.03,hang=0.005";
/** A phase that is not reached within this is killed in whatever it does then. */
const AIM_LIMIT_MS = 15_000;
const FINISH_LIMIT_MS = 120_000;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "20" },
    seed: { type: "string", default: `${Date.now() % 1_000_000}` },
    json: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (values.help) {
  console.log("npm run chaos -- dispatcher [--kills N, default 20] [--seed S] [--json] [--keep: keep the files]");
  process.exit(0);
}
const kills = whole("kills", values.kills);
const seed = whole("seed", values.seed);
const random = seededRandom(seed);
const folder = mkdtempSync(join(tmpdir(), "drill-"));
const [data, configFile, receipts] = [
  join(folder, "data"),
  join(folder, "config.json"),
  join(folder, "receipts.jsonl"),
];

const inbox = await startInbox(receipts, MISBEHAVIOUR, seed);
writeFileSync(configFile, JSON.stringify(drillConfig(inbox.smtpUrl, inbox.webhookBase)));
const port = await freePort();
const feed = new Feed(`http://127.0.0.1:${port}`);
const killsByPhase: Record<string, number> = Object.fromEntries(PHASES.map((phase) => [phase, 0]));

feed.start();
for (let kill = 0; kill < kills; kill += 1) {
  const phase = PHASES[kill % PHASES.length] ?? "intake";
  const aim: Aim = { phase, nth: 1 + Math.floor(random() * 150), delayMs: Math.floor(random() * 4) };
  const life = await startDispatcher(data, configFile, port, aim);
  const late = sleep(AIM_LIMIT_MS, "late", { ref: false });
  const missed = (await Promise.race([life.ended, late])) === "late";
  if (missed) life.kill();
  await life.ended;
  const hit = missed ? "elsewhere" : phase;
  killsByPhase[hit] = (killsByPhase[hit] ?? 0) + 1;
  console.error(
    `kill ${kill + 1} of ${kills}: ${hit} ${aim.nth}, after ${aim.delayMs} ms; ${feed.accepted.size} accepted`,
  );
}

const last = await startDispatcher(data, configFile, port, undefined);
await feed.stop();
const file = join(data, DATABASE);
const until = performance.now() + FINISH_LIMIT_MS;
while (unfinished(file, feed.accepted).length > 0 && performance.now() < until) await sleep(200);
await last.stop();
await last.ended;
await inbox.stop();

const { neverReceived, unrecordedSends, openAttempts, ...verdict } = judge(file, receipts, feed.accepted);
const passed = neverReceived + unrecordedSends + openAttempts === 0 && isClean(verdict);
console.error(`delivered and never received: ${neverReceived}`);
console.error(`sent without an intent: ${unrecordedSends}; attempts without an outcome: ${openAttempts}`);
console.error(passed ? "nothing was lost, and nothing settled twice" : "THE BOOKS DON'T AGREE");
if (values.keep) console.error(`the files are in ${folder}`);
else rmSync(folder, { recursive: true });
console.log(
  values.json ? JSON.stringify({ ...verdict, kills, killsByPhase, seed }) : { ...verdict, kills, killsByPhase, seed },
);
process.exitCode = passed ? 0 : 1;

function isClean({
  accepted,
  final,
  lost,
  duplicatesWithOtherId,
  doubleSettles,
}: Pick<Verdict, "accepted" | "final" | "lost" | "duplicatesWithOtherId" | "doubleSettles">): boolean {
  return accepted > 0 && final === accepted && lost === 0 && duplicatesWithOtherId === 0 && doubleSettles === 0;
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} must be an integer >= 0, got ${text}`);
  return value;
}
