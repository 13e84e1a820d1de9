// Against the floor: an array for each reader. Against peers: bench/core/broadcast.bench.ts.
import { compare } from "../../../../bench/harness.ts";
import { Broadcast } from "./broadcast.ts";

const READERS = 8;

await compare("broadcast-offer-poll", 200_000, {
  Broadcast(ops) {
    const topic = new Broadcast<number>();
    const subs = Array.from({ length: READERS }, () => topic.subscribe({ capacity: 4 }));
    for (let item = 0; item < ops; item += 1) {
      topic.offer(item);
      for (const sub of subs) sub.poll();
    }
  },
  floor(ops) {
    const lines: number[][] = Array.from({ length: READERS }, () => []);
    for (let item = 0; item < ops; item += 1) {
      for (const line of lines) line.push(item);
      for (const line of lines) line.pop();
    }
  },
});
