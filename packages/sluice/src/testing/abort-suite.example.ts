// A mailbox of one's own, held to what everything in sluice that takes a signal promises.
import { Queue, type WaitOptions } from "sluice";
import { abortCases, type AbortSubject } from "sluice/testing";

const subject: AbortSubject = {
  name: "Mailbox.receive",
  lacks: { timeoutMs: "letters are worth any wait" },
  open(clock) {
    const letters = new Queue<string>(10, { clock });
    const receive = ({ signal }: WaitOptions): Promise<string> => letters.take({ signal });
    return {
      call: receive,
      satisfy: () => letters.offer("hello"),
      state: () => ({ letters: letters.size, readers: letters.stats().waitingConsumers }),
      giveBack: (letter) => letters.offer(letter as string),
    };
  },
};

// Any test runner will do: `for (const { title, run } of abortCases(subject)) it(title, run);`
for (const { title, run } of abortCases(subject)) {
  await run();
  console.log(title);
}

// Prints:
// Mailbox.receive acquires nothing with a signal that is aborted already, and rejects with its reason
// Mailbox.receive rejects with the reason untouched when the signal aborts mid-wait, and frees the place at once
// Mailbox.receive changes nothing by an abort after the call has settled
// Mailbox.receive loses nothing when the signal aborts in the turn of the grant
// Mailbox.receive has one listener for a thousand calls on one signal, and none after an abort
// Mailbox.receive has one listener for a thousand calls on one signal, and none after success
// Mailbox.receive lets a call wait on though timeoutMs has passed (letters are worth any wait)
// Mailbox.receive rejects for a bad signal and takes nothing, never throws
// Mailbox.receive leaves nobody in line when the signal itself throws
