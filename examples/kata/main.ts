// Examines the solutions, sluice's own and all that is wrong: how many checks each passes, and the first that it doesn't.
import { type ExaminedVersion, examineAll } from "./kata.ts";

for (const { name, checks, solution, sluice, starter, wrong } of await examineAll()) {
  console.log(`${name}, ${checks.length} checks`);
  const tell = ({ title, fails }: ExaminedVersion): void => {
    const [first = "all"] = fails;
    console.log(`  ${String(checks.length - fails.length).padStart(2)}  ${title.padEnd(56)} ${first}`.trimEnd());
  };
  for (const version of [solution, sluice, starter, ...wrong]) tell(version);
}

// Prints:
// pool, 9 checks
//    9  solution                                                 all
//    9  sluice                                                   all
//    7  a rejection stops nobody                                 rejects with the first rejection, and starts nothing more
//    4  all at once                                              runs as many as the limit at a time, never more
//    7  in chunks, each as slow as its slowest                   starts the next as soon as one has ended
//    5  results are pushed as they come                          gives the results in the order of the items
//    4  looks, awaits, and then claims                           starts the next as soon as one has ended
//    5  resolves when the last has, and hangs without one        is done at once with an empty list
//    7  the error is wrapped: nobody can tell a 404 from a 503   rejects with the first rejection, and starts nothing more
//    8  what fn throws at once escapes                           rejects with what fn throws at once
// limiter, 6 checks
//    6  solution                                                 all
//    6  sluice                                                   all
//    5  counts down first, then wakes                            lets no newcomer in between the end of one and the start of the next
//    4  no finally                                               goes on after a rejection, which is its caller's
//    5  the slot of what throws at once is lost                  goes on after what throws at once, which is a rejection
//    5  last come, first served                                  calls them in the order of coming
//    5  looks, awaits, and then counts                           runs as many as the limit at a time, never more
//    3  the result is forgotten                                  gives each caller its own result
// semaphore, 5 checks
//    5  solution                                                 all
//    5  sluice                                                   all
//    4  release counts up first                                  lets no newcomer in before the one that was woken
//    4  no finally                                               gives back what was held by something that failed
//    3  looks, awaits, and then takes                            lets as many in as there are permits
//    4  last come, first served                                  lets them in in the order of coming
//    4  a release too many makes a permit                        never has more permits than it began with
// debounce, 8 checks
//    8  solution                                                 all
//    8  sluice                                                   all
//    5  the timer goes on: each call is delayed, none dropped    runs the call that waits when it is flushed, and not again
//    6  the first timer counts: a throttle                       runs the last call of each burst, a wait after it
//    4  the first call runs at once, and again at the end        runs a single call once
//    7  an arrow function: this is lost                          keeps what it was called on
//    7  state cleared after the run: a call within is lost       runs a call that fn makes itself, in its turn
//    7  flush leaves the timer: it runs twice                    runs the call that waits when it is flushed, and not again
//    7  cancel stops the timer, and flush runs it all the same   drops the call that waits when it is cancelled
//    7  polls for the pause, for ever                            leaves no timer when nothing waits
// throttle, 9 checks
//    9  solution                                                 all
//    9  sluice                                                   all
//    4  the last call is lost                                    runs the call that waits when it is flushed, and not again
//    6  the last run begins no wait                              runs the first call at once, then the last of each wait
//    8  the first of those that wait is run, not the last        runs the first call at once, then the last of each wait
//    5  a single call runs at both ends                          runs a single call once
//    6  an interval that is never cleared                        leaves no timer when nothing waits
//    8  an arrow function: this is lost                          keeps what it was called on
//    8  cancel forgets the timer, and not the call               drops the call that waits when it is cancelled
