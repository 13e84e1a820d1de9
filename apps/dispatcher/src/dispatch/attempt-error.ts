/**
 * An attempt that came to nothing. What became of the notification is recorded already, so whoever catches this has
 * nothing left to do but to tell the provider's breaker.
 */
export class AttemptError extends Error {
  override readonly name = "AttemptError";
  readonly code = "ATTEMPT_FAILED";
  /** Whether it speaks against the provider; if not, its breaker takes no notice. */
  readonly providerFault: boolean;

  constructor(message: string, providerFault: boolean, options?: ErrorOptions) {
    super(message, options);
    this.providerFault = providerFault;
  }
}
