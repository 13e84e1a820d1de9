/** Of what a `Mutex` lends. */
import { asPlainPromise, Wait } from "../internal/wait.ts";
import { issueGuard, type Permit } from "./permit.ts";
import { PermitPool } from "./permit-pool.ts";

export class GuardPool extends PermitPool<Permit> {
  /** For who gave one back only to wait for a `Condition` and must have it again: no bound and no closing is in the way. */
  reclaim(): Promise<Permit> {
    return this.enter(new Reclaim(this.clock.now(), 1));
  }

  protected override issue(): Permit {
    return issueGuard(this);
  }
}

class Reclaim extends Wait<Permit, number> {
  override reject(): void {} // nothing turns it away
}

asPlainPromise(Reclaim);
