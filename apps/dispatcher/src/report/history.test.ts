import { expect, it } from "vitest";
import { historyText } from "./history.ts";

it("reads as the story of one notification", () => {
  const at = Date.UTC(2026, 10, 29, 12);
  const text = historyText({
    id: "ntf_1",
    event: { id: "e1", source: "https://github.com/x", type: "push" },
    user: "user-001",
    channel: "email",
    rule: "pushes",
    status: "dead",
    reason: "550 no such mailbox",
    entries: [
      { at, kind: "accepted" },
      { at, kind: "matched", detail: "by rule pushes" },
      { at, kind: "deferred", until: at + 12_000, detail: "over the limit of 5 in 60 s" },
      { at: at + 12_000, kind: "attempt", attempt: 1 },
      { at: at + 12_040, kind: "failed", attempt: 1, durationMs: 40, until: at + 13_000, detail: "451 later" },
      { at: at + 13_900, kind: "dead", detail: "550 no such mailbox" },
    ],
  });
  expect(text).toBe(
    [
      "ntf_1  dead: 550 no such mailbox",
      "  event    push e1 of https://github.com/x",
      "  to       user-001 over email, by rule pushes",
      "",
      "  2026-11-29T12:00:00.000Z  accepted",
      "  2026-11-29T12:00:00.000Z  matched    by rule pushes",
      "  2026-11-29T12:00:00.000Z  deferred   not before 2026-11-29T12:00:12.000Z, over the limit of 5 in 60 s",
      "  2026-11-29T12:00:12.000Z  attempt    attempt 1",
      "  2026-11-29T12:00:12.040Z  failed     attempt 1, after 40 ms, next 2026-11-29T12:00:13.000Z, 451 later",
      "  2026-11-29T12:00:13.900Z  dead       550 no such mailbox",
    ].join("\n"),
  );
});
