export function checkInteger(name: string, value: number, min: number, max: number = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  const rule = max === Number.MAX_SAFE_INTEGER ? `>= ${min}` : `from ${min} to ${max}`;
  throw new RangeError(`${name} must be an integer ${rule}, got ${value}`);
}
