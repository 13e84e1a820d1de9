// A routing table that every request reads and that is rebuilt now and then. Nobody sees a table that is half built.
import { RwLock } from "sluice";

const routes = RwLock.of(new Map([["/", "home"]]));

async function serve(path: string): Promise<void> {
  await routes.readers.run(async ({ value }) => {
    const page = value.get(path) ?? "not found"; // value.set would not compile
    await Promise.resolve();
    console.log(`${path}: ${page}, ${routes.reading} read`);
  });
}

async function rebuild(): Promise<void> {
  await routes.writers.run(async ({ value }) => {
    value.clear();
    await Promise.resolve(); // nobody reads meanwhile
    value.set("/", "home").set("/shop", "shop");
    console.log("rebuilt");
  });
}

await Promise.all([serve("/"), serve("/shop"), rebuild(), serve("/shop")]);

// By hand: what was written is read again with no writer in between, while other readers come in.
{
  const writer = await routes.write();
  writer.replace(new Map([["/", "closed"]]));
  using reader = writer.downgrade();
  console.log(`${reader.value.get("/")}, ${routes.tryRead() === undefined ? "alone" : "with others"}`);
}

// Prints:
// /: home, 2 read
// /shop: not found, 2 read
// rebuilt
// /shop: shop, 1 read
// closed, with others
