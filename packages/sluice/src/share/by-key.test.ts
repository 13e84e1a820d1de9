import { expect, it } from "vitest";
import { batch } from "./batch.ts";
import { byKey } from "./by-key.ts";
import { loadMany } from "./load-many.ts";

it("takes undefined for a value of its key where the answer has it, and tells what an answer lacks", async () => {
  const gone = new Error("gone");
  const rows = new Map<string, number | undefined | Error>([
    ["none", undefined],
    ["other", 1],
    ["more", 2],
    ["gone", gone],
  ]);
  const results = await loadMany(
    batch<string, number | undefined>((keys) => byKey(keys, rows)),
    ["gone", "none", "lost"],
  );
  expect(results).toMatchObject([
    { status: "rejected", reason: gone },
    { status: "fulfilled", value: undefined },
    { status: "rejected", reason: { expected: 3, got: 4 } },
  ]);
});
