// Mail is held back while the provider is down for maintenance, and goes out in order when it is back.
import { Gate } from "sluice";

const provider = new Gate({ open: true });

async function send(mail: string): Promise<void> {
  await provider.run(() => console.log(`sent ${mail}`));
}

await send("welcome");
provider.close();
const held = ["invoice", "reminder"].map(send);
console.log(`${provider.waiting} mails wait`);
provider.open();
await Promise.all(held);

// Prints:
// sent welcome
// 2 mails wait
// sent invoice
// sent reminder
