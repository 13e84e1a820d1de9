/** How often the inbox misbehaves, and in which way. */

const FAULTS = ["slow", "4xx", "5xx", "drop", "lose", "hang"] as const;
type Fault = (typeof FAULTS)[number];

/**
 * What the inbox does with one message:
 * - `slow` takes it and answers late;
 * - `4xx` and `5xx` refuse it: HTTP 400 and 503, SMTP 451 and 550, so each once for now and once for good;
 * - `drop` hangs up without taking it;
 * - `lose` takes it and hangs up, so the sender can't know;
 * - `hang` doesn't take it and never answers.
 */
export type Behaviour = "ok" | Fault;

/** Shares of all messages, each from 0 to 1, together at most 1. */
export interface Misbehaviour extends Readonly<Partial<Record<Fault, number>>> {
  /** How late a slow answer is. @default 2000 */
  readonly slowMs?: number | undefined;
}

export const DEFAULT_SLOW_MS = 2_000;

/** Reads `slow=0.1:3000,5xx=0.05`: fault and share, for `slow` also the delay in milliseconds. */
export function parseMisbehaviour(text: string): Misbehaviour {
  const parsed: Record<string, number> = {};
  for (const part of text.split(",").filter((each) => each.trim() !== "")) {
    const [, name = "", share = "", delay] = /^\s*(\w+)\s*=\s*([\d.]+)(?::(\d+))?\s*$/.exec(part) ?? [];
    if (share === "") throw new RangeError(`misbehave must be like slow=0.1:2000,5xx=0.05, got ${quote(part)}`);
    if (name in parsed) throw new RangeError(`misbehave must name each fault once, got ${quote(name)} again`);
    if (delay !== undefined && name !== "slow") {
      throw new RangeError(`misbehave takes a delay for slow alone, got ${quote(part)}`);
    }
    parsed[name] = Number(share);
    if (delay !== undefined) parsed["slowMs"] = Number(delay);
  }
  return checkMisbehaviour(parsed);
}

export function checkMisbehaviour(misbehaviour: Misbehaviour): Misbehaviour {
  const { slowMs = DEFAULT_SLOW_MS, ...shares } = misbehaviour;
  for (const [fault, share] of Object.entries(shares)) {
    if (!(FAULTS as readonly string[]).includes(fault)) {
      throw new RangeError(`misbehave must name ${FAULTS.join(", ")}, got ${quote(fault)}`);
    }
    if (!(share >= 0 && share <= 1)) throw new RangeError(`misbehave ${fault} must be from 0 to 1, got ${share}`);
  }
  const sum = Object.values(shares).reduce((total, share) => total + share, 0);
  if (sum > 1 + ROUNDING) throw new RangeError(`misbehave shares must add up to at most 1, got ${sum}`);
  if (Number.isSafeInteger(slowMs) && slowMs >= 0) return misbehaviour;
  throw new RangeError(`misbehave slowMs must be an integer >= 0, got ${slowMs}`);
}

/** Draws a behaviour for each message. */
export function drawBehaviour(misbehaviour: Misbehaviour, random: () => number): () => Behaviour {
  return () => {
    let left = random();
    for (const fault of FAULTS) {
      left -= misbehaviour[fault] ?? 0;
      if (left < 0) return fault;
    }
    return "ok";
  };
}

/** 0.1 added ten times is not 1. */
const ROUNDING = 1e-9;

function quote(value: string): string {
  return JSON.stringify(value);
}
