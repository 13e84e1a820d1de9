/** A provider's answer, or a name, as one short line: it comes from outside and ends up in logs and histories. */
export function oneLine(text: string): string {
  const line = text.toWellFormed().replaceAll(/[\s\p{Cc}]+/gu, " ");
  return line.trim().slice(0, MAX_CHARACTERS);
}

const MAX_CHARACTERS = 300;
