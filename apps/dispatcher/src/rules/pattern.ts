/**
 * A pattern over whole values: `*` stands for any run of characters, the empty one included, everything else for itself.
 * Matched piece by piece and not as a regular expression: values come from outside, and `*a*a*a` would make one
 * backtrack.
 */
export type Pattern = (value: string) => boolean;

export function compilePattern(source: string): Pattern {
  const pieces = source.split("*");
  if (pieces.length === 1) return (value) => value === source;
  const first = pieces[0] ?? "";
  const last = pieces.at(-1) ?? "";
  const middle = pieces.slice(1, -1).filter((piece) => piece !== "");
  return (value) => {
    const end = value.length - last.length;
    if (end < first.length || !value.startsWith(first) || !value.endsWith(last)) return false;
    let from = first.length;
    for (const piece of middle) {
      const at = value.indexOf(piece, from); // the earliest leaves the most for the others
      if (at === -1 || at + piece.length > end) return false;
      from = at + piece.length;
    }
    return true;
  };
}

/** Whether the pattern matches one value only. */
export function isLiteral(source: string): boolean {
  return !source.includes("*");
}
