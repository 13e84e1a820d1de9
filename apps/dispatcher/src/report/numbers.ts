/** Numbers as people read them. */
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(n: number): string {
  return WHOLE.format(n);
}

/** Down to milliseconds below one second, and up to hours. */
export function seconds(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  const rest = Math.round((ms % 60_000) / 1_000);
  return minutes < 60 ? `${minutes} min ${rest} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function share(part: number, whole: number): string {
  return `${((part * 100) / whole).toFixed(1)} %`;
}
