// A chat room for each name. A room that nobody writes in is put away, with what was said in it saved, and comes back with
// the next message.
import { KeyedActors } from "sluice";

const archive = new Map<string, readonly string[]>(); // a database, say

const rooms = new KeyedActors<string, string, number>(
  50,
  (room) => {
    const lines = [...(archive.get(room) ?? [])];
    console.log(`${room} opens with ${lines.length} lines`);
    return {
      receive: (line) => lines.push(line),
      retire: () => {
        archive.set(room, lines);
        console.log(`${room} is put away`);
      },
    };
  },
  { maxActors: 2, idleMs: 60_000 },
);

console.log(await rooms.ask("lobby", "hello"));
console.log(await rooms.ask("garden", "anybody here?"));
console.log(await rooms.ask("lobby", "bye"));
console.log(await rooms.ask("attic", "boo")); // the third, so that the one idle longest has to go
console.log(await rooms.ask("garden", "still here"));

rooms.close();
await rooms.drain();
console.log([...archive.keys()].join(", "));

// Prints:
// lobby opens with 0 lines
// 1
// garden opens with 0 lines
// 1
// 2
// attic opens with 0 lines
// garden is put away
// 1
// garden opens with 1 lines
// 2
// lobby is put away
// garden is put away
// attic is put away
// garden, lobby, attic
