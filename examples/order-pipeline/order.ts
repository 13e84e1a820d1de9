/** What somebody wants to buy, once it has been looked at. */
export interface Order {
  readonly id: string;
  readonly sku: string;
  readonly quantity: number;
  readonly cents: number;
}

/**
 * By what has been done: `accepted` → `charged` → `allocated`; or `declined`; or `charged` → `unallocated` → `refunded`.
 * `allocated`, `declined` and `refunded` are ends, of which the customer hears.
 */
export type OrderState = "accepted" | "charged" | "allocated" | "declined" | "unallocated" | "refunded";

/** Not an order that could be accepted, now or later. */
export class InvalidOrderError extends Error {
  override readonly name = "InvalidOrderError";
}

const ID = /^[\w-]{1,64}$/; // it becomes part of a header

export function validate(item: unknown): Order {
  const { id, sku, quantity, cents } = (item ?? {}) as Partial<Record<keyof Order, unknown>>;
  if (typeof id !== "string" || !ID.test(id)) throw new InvalidOrderError("no id");
  if (typeof sku !== "string" || sku === "") throw new InvalidOrderError("no sku");
  if (!Number.isSafeInteger(quantity) || (quantity as number) < 1) throw new InvalidOrderError("no quantity");
  if (!Number.isSafeInteger(cents) || (cents as number) < 1) throw new InvalidOrderError("no price");
  return { id, sku, quantity: quantity as number, cents: cents as number };
}
