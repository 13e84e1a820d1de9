// Four posts each load their author: one query with the distinct ids. The loader lives for one request, so it may keep
// what it has; an author who doesn't exist is an error of that key alone.
import { batch, byKey } from "sluice";

const authors = new Map([
  [1, "Ann"],
  [2, "Bob"],
]);

const author = batch<number, string>(
  async (ids) => {
    console.log(`SELECT … WHERE id IN (${ids.join(", ")})`);
    return byKey(ids, authors);
  },
  { cache: new Map(), maxSize: 100 },
);

const names = [1, 2, 1, 3].map((id) => author.load(id).catch((error: Error) => error.name));
console.log(await Promise.all(names));
console.log(await author.load(1), author.stats());

// Prints:
// SELECT … WHERE id IN (1, 2, 3)
// [ 'Ann', 'Bob', 'Ann', 'BatchAnswerError' ]
// Ann { batches: 1, keys: 3, hits: 2 }
