import { type Subject, titleOf } from "./subject.ts";

export type DiagnosisId =
  | "H01"
  | "H02"
  | "H03"
  | "H04"
  | "H05"
  | "H06"
  | "H07"
  | "H08"
  | "H09"
  | "H11"
  | "H12"
  | "H13"
  | "H14"
  | "H15"
  | "H16"
  | "H17"
  | "H18"
  | "H19"
  | "H20";

interface Diagnosis {
  readonly failureModes: readonly string[];
  readonly remedy: string;
}

/** What the doctor knows: id, failure modes of `docs/failure-modes.md` that it is a sign of, and what to do. */
const DIAGNOSES: Readonly<Record<DiagnosisId, Diagnosis>> = {
  H01: {
    failureModes: ["F10.1", "F10.5"],
    remedy:
      "hold it by `run(fn)` or `using`, so that it goes back on every path, and hold it for no longer than needed",
  },
  H02: {
    failureModes: ["F01.2", "F10.1"],
    remedy: "have whoever ends close or fail what others wait for, and give waits a `signal` or `timeoutMs`",
  },
  H03: {
    failureModes: ["F07.2", "F08.1", "F09.3", "F10.2", "F11.5"],
    remedy: "take all at once with `acquireAll`, or take them in one order everywhere",
  },
  H04: {
    failureModes: ["F02.2"],
    remedy: "give the inner work a limiter of its own, or call it directly: its caller holds a slot already",
  },
  H05: {
    failureModes: ["F01.5"],
    remedy: "add consumers, make them faster, or take in less: it is being outrun, whatever its depth says",
  },
  H06: {
    failureModes: ["F05.4"],
    remedy: "retry at one layer, the one nearest the call, or let all layers share a retry budget",
  },
  H07: {
    failureModes: ["F02.1", "F06.1"],
    remedy:
      "widen it if what it protects can take more, else turn work away earlier; give slow work a limiter of its own",
  },
  H08: {
    failureModes: ["F09.1", "F09.2"],
    remedy: "use the fair order, which lets nobody be overtaken for ever",
  },
  H09: {
    failureModes: ["F02.4", "F06.5"],
    remedy: "look at the error, and name a sink for those to come, as `onLateError` or what its options call it",
  },
  H11: {
    failureModes: ["F11.1", "F11.2", "F11.4"],
    remedy: "count only those who really come, and have whoever leaves early deregister or fail",
  },
  H12: {
    failureModes: ["F01.1", "F02.3", "F10.3"],
    remedy: "bound it by `capacity` or `maxWaiting`, and say with `whenFull` what becomes of the rest",
  },
  H13: {
    failureModes: ["F10.4"],
    remedy: "share one limit between all who call the dependency, or lower each to its part of the capacity",
  },
  H14: {
    failureModes: ["F12.1", "F12.3", "F13.5"],
    remedy: "give loads a timeout of their own and a `maxJoinAgeMs`, and see what was to replace the value",
  },
  H15: {
    failureModes: ["D05"],
    remedy:
      "look at the dependency; if no trial was made, at what keeps trials from ending; and answer callers from elsewhere",
  },
  H16: {
    failureModes: ["F05.1", "F05.5"],
    remedy: "bound the calls of all levels by one shared limiter, or fetch in one call what is fetched in many",
  },
  H17: {
    failureModes: ["F05.3"],
    remedy: "hand the signal on to what runs, so that it ends when nobody wants its result any more",
  },
  H18: {
    failureModes: ["F07.3"],
    remedy: "let it wait for nothing long: hand slow work on, and let its result come back as another message",
  },
  H19: {
    failureModes: ["F09.4"],
    remedy: "use a `Mutex`, which is cheaper where writes are not rare",
  },
  H20: {
    failureModes: ["F01.3", "F06.4"],
    remedy: "end producers before consumers, close queues so that those who wait are turned away, and set a deadline",
  },
};

export type Fact = number | string | boolean;

export interface Report {
  readonly id: DiagnosisId;
  /** Numbers in `docs/failure-modes.md`. */
  readonly failureModes: readonly string[];
  readonly subject: Subject;
  /** What was seen, in one sentence. */
  readonly evidence: string;
  /** The same as values, by name. */
  readonly facts: Readonly<Record<string, Fact>>;
  readonly remedy: string;
}

/** `says` goes on where the title of the subject ends; `known` is what is known better than by the id. */
export function report(
  id: DiagnosisId,
  subject: Subject,
  says: string,
  facts: Readonly<Record<string, Fact>>,
  known: Partial<Diagnosis> = {},
): Report {
  const { failureModes, remedy } = { ...DIAGNOSES[id], ...known };
  return { id, failureModes, subject, evidence: `${titleOf(subject)} ${says}`, facts, remedy };
}

/** `1 call`, `2 calls`, for sentences. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `1.5 s`, for sentences. */
export function span(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`;
}
