/** What the tests of the order pipeline stand on: a payment server, and shops that share a file. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { CircuitBreaker, type Policy } from "sluice";
import type { Order } from "./order.ts";
import { OrderBook } from "./order-book.ts";
import { type Notify, OrderPipeline } from "./order-pipeline.ts";
import { type Behaviour, PaymentServer } from "./payment-server.ts";
import { Payments } from "./payments.ts";

export interface Shop extends AsyncDisposable {
  readonly orders: OrderPipeline;
  readonly book: OrderBook;
}

export interface ShopOptions {
  readonly breaker?: Policy;
  readonly notify?: Notify;
  /** For one answer of the payment server: short only where one is to be late, since a machine may be slow too. */
  readonly timeoutMs?: number;
}

export class Stage {
  /** Who has heard of what. */
  readonly told: string[] = [];
  readonly server: PaymentServer;
  readonly #folder = mkdtempSync(join(tmpdir(), "orders-"));

  constructor(server: PaymentServer) {
    this.server = server;
  }

  static async open(): Promise<Stage> {
    return new Stage(await PaymentServer.start());
  }

  /** The file that all shops share. */
  get path(): string {
    return join(this.#folder, "shop.db");
  }

  readonly tell: Notify = async ({ id, state }) => void this.told.push(`${id} ${state}`);

  /** Another process would be no different: what they share is the file. */
  async shop({
    breaker = new CircuitBreaker({ cooldownMs: 20 }),
    notify = this.tell,
    timeoutMs = 20_000,
  }: ShopOptions = {}): Promise<Shop> {
    const { path } = this;
    const store = await SqliteStore.open({ path, durability: "normal" });
    const book = new OrderBook(path, store);
    const payments = new Payments({ url: this.server.url, timeoutMs, breaker });
    const orders = new OrderPipeline({ store, book, payments, notify, retry: { baseMs: 5, maxMs: 20 } });
    const dispose = async (): Promise<void> => {
      await orders.stop();
      book.close();
      await store.close();
    };
    return { orders, book, [Symbol.asyncDispose]: dispose };
  }

  async close(): Promise<void> {
    await this.server.stop();
    rmSync(this.#folder, { recursive: true });
  }
}

/** For where the server answers too late. */
export const IMPATIENT: ShopOptions = { timeoutMs: 250 };

export function lamp(id: string): Order {
  return { id, sku: "lamp", quantity: 1, cents: 1_250 };
}

/** Fails so often, then all is well. */
export function times(
  count: number,
  behaviour: Behaviour,
  only = "charge",
): (key: string, request: number) => Behaviour {
  return (key, request) => (key.startsWith(only) && request <= count ? behaviour : "well");
}
