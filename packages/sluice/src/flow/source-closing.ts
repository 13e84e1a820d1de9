/** Turns in which a source that waits for nothing has answered, also one that hands on what others give. */
const ANSWERS_WITHIN = 32;

/**
 * As `closed` does, unless the source stays at its next item, and then at once: an async generator closes only after
 * that, which may never come. `answer` is the latest it gave or owes; how it closes in the end is for `onLateError`.
 */
export async function untilClosed(
  closed: Promise<void>,
  answer: unknown,
  onLateError: (error: unknown) => void,
): Promise<void> {
  let isAsking = true;
  const onAnswer = (): void => void (isAsking = false);
  Promise.resolve(answer).then(onAnswer, onAnswer);
  for (let turn = 0; isAsking && turn < ANSWERS_WITHIN; turn += 1) await undefined;
  if (isAsking) closed.catch(onLateError);
  else await closed;
}
