// Two browser tabs for four pages. A tab that has crashed is replaced, and no page waits for longer than it is worth.
import { Pool } from "sluice";

class Tab {
  static opened = 0;
  readonly id = (Tab.opened += 1);
  alive = true;

  async render(page: string): Promise<string> {
    await Promise.resolve();
    if (page === "bad") this.alive = false;
    return this.alive ? `${page} by tab ${this.id}` : `${page} has crashed tab ${this.id}`;
  }
}

await using tabs = new Pool(2, {
  create: () => new Tab(),
  destroy: (tab) => console.log(`tab ${tab.id} is closed`),
  validate: (tab) => tab.alive,
  idleMs: 30_000,
});

const pages = ["home", "bad", "news", "help"];
const shots = pages.map((page) => tabs.run((tab) => tab.render(page), { timeoutMs: 5_000 }));
for (const shot of await Promise.all(shots)) console.log(shot);

// Where the work doesn't fit a function, hold the lease yourself; it goes back at the end of the block.
{
  using lease = await tabs.acquire();
  console.log(await lease.resource.render("print"));
}
const { created, destroyed, idle } = tabs.stats();
console.log(`${created} opened, ${destroyed} closed, ${idle} idle`);

// Prints:
// tab 2 is closed
// home by tab 1
// bad has crashed tab 2
// news by tab 1
// help by tab 3
// print by tab 3
// 3 opened, 1 closed, 2 idle
// tab 1 is closed
// tab 3 is closed
