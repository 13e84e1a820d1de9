import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("loses nothing and settles nothing twice when the dispatcher is killed in intake, claim, send and settle", async () => {
  const args = ["--conditions=@sluice/source", "tests/chaos/dispatcher.ts", "--kills", "5", "--seed", "20", "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const verdict = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
  expect(verdict).toMatchObject({
    final: verdict["accepted"],
    lost: 0,
    duplicatesWithOtherId: 0,
    doubleSettles: 0,
    kills: 5,
    killsByPhase: { intake: 2, claim: 1, send: 1, settle: 1 },
  });
  expect(verdict["accepted"]).toBeGreaterThan(100);
}, 240_000);
