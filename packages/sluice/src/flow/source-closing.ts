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
  let turnsLeft = ANSWERS_WITHIN;
  let isAsking = true;
  const onAnswer = (): void => {
    isAsking = false;
    turnsLeft = 0;
  };
  Promise.resolve(answer).then(onAnswer, onAnswer);
  for (; turnsLeft > 0; turnsLeft -= 1) await Promise.resolve();
  if (isAsking) closed.catch(onLateError);
  else await closed;
}
