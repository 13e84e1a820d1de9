/** For a batch function that finds its values in any order, as a query does. */
import { BatchAnswerError } from "../errors.ts";
import type { BatchAnswer } from "./batch-options.ts";

/** What `answer` has for each key, in their order; a key that it lacks gets a `BatchAnswerError`. */
export function byKey<K, V>(keys: readonly K[], answer: ReadonlyMap<K, V | Error>): BatchAnswer<V> {
  return keys.map((key) => {
    return answer.has(key) ? (answer.get(key) as V | Error) : new BatchAnswerError(keys.length, answer.size);
  });
}
