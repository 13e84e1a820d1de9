/** What a job's `reason`, and a crash among its `errors`, say: the same words from every driver. */
export const CRASHED = "the lease lapsed";
export const DUPLICATE = "a newer job holds its unique key";
export const CANCELLED = "cancelled";

export function poison(crashes: number): string {
  return `poison: crashed ${crashes} times`;
}
