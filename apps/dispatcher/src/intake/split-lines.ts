/** Cuts a stream of bytes at its line feeds, holding no more of a line than may be wanted. */

export interface Line {
  /** From 1. */
  readonly line: number;
  /** Without its end; undefined if there were more than `maxBytes`. */
  readonly bytes: Uint8Array | undefined;
}

const LF = 0x0a;
const CR = 0x0d;

/** The lines that each piece of input completes; the last one needs no end. */
export async function* splitLines(input: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line[]> {
  let line = 1;
  let held: Uint8Array[] = [];
  let length = 0;

  const hold = (bytes: Uint8Array): void => {
    length += bytes.byteLength;
    if (length <= maxBytes + 1) held.push(bytes); // one more, which may be a CR
    else held = [];
  };

  const finish = (): Line => {
    const whole = length > maxBytes + 1 ? undefined : Buffer.concat(held);
    const bytes = whole?.at(-1) === CR ? whole.subarray(0, -1) : whole;
    const done = { line, bytes: bytes === undefined || bytes.byteLength > maxBytes ? undefined : bytes };
    line += 1;
    held = [];
    length = 0;
    return done;
  };

  for await (const chunk of input) {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      hold(chunk.subarray(from, end));
      lines.push(finish());
      from = end + 1;
    }
    if (from < chunk.byteLength) hold(chunk.subarray(from));
    if (lines.length > 0) yield lines;
  }
  if (length > 0) yield [finish()];
}
