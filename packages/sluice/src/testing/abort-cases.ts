/** The cases of the abort suite. */
import type { AbortLacks } from "./abort-suite.ts";
import { type AbortStage, crowd, equal, MANY, refuses, seen, start } from "./abort-stage.ts";
import { CountingController } from "./counting-signal.ts";
import { turn } from "./turn.ts";

export interface AbortTemplate {
  readonly title: string;
  readonly needs?: keyof AbortLacks;
  readonly insteadOf?: keyof AbortLacks;
  readonly run: (stage: AbortStage) => Promise<void>;
}

const LIMIT_MS = 250;
const LONG_MS = 10_000;

export const templates: readonly AbortTemplate[] = [
  {
    title: "acquires nothing with a signal that is aborted already, and rejects with its reason",
    async run({ scene, clock, satisfied }) {
      for (const state of [seen(scene, clock), satisfied]) {
        if (state === satisfied) await scene.satisfy();
        for (const reason of reasons()) {
          const call = new CountingController();
          call.abort(reason);
          const result = start(scene, { signal: call.signal });
          await turn();
          result.rejectedWith(call.signal.reason);
          equal(call.listeners, 0, "listeners");
          equal(seen(scene, clock), state, "state");
        }
      }
    },
  },
  {
    title: "rejects with the reason untouched when the signal aborts mid-wait, and frees the place at once",
    needs: "waiting",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      for (const reason of reasons()) {
        const call = new CountingController();
        const result = start(scene, { signal: call.signal });
        await turn();
        result.waits();
        call.abort(reason);
        equal(seen(scene, clock), before, "state in the turn of the abort");
        await turn();
        result.rejectedWith(call.signal.reason);
        equal(call.listeners, 0, "listeners");
      }
    },
  },
  {
    title: "leaves a call that is under way to the signal it hands on",
    insteadOf: "waiting",
    async run({ scene }) {
      const call = new CountingController();
      const result = start(scene, { signal: call.signal });
      await turn();
      call.abort(new Error("mid-way"));
      await turn();
      result.waits();
      await scene.satisfy();
      await turn();
      result.succeeded();
      equal(call.listeners, 0, "listeners");
    },
  },
  {
    title: "changes nothing by an abort after the call has settled",
    async run({ scene, clock }) {
      const call = new CountingController();
      const result = start(scene, { signal: call.signal, timeoutMs: LONG_MS });
      await turn();
      await scene.satisfy();
      await turn();
      result.succeeded();
      equal([call.listeners, clock.timers].join(), "0,0", "listeners and timers");
      const after = seen(scene, clock);
      call.abort(new Error("late"));
      await turn();
      equal(seen(scene, clock), after, "state");
    },
  },
  {
    title: "loses nothing when the signal aborts in the turn of the grant",
    async run({ scene, clock, satisfied }) {
      const call = new CountingController();
      const result = start(scene, { signal: call.signal });
      await turn();
      const granted = scene.satisfy();
      call.abort(new Error("same turn"));
      await granted;
      await turn();
      if (result.status === "fulfilled") scene.giveBack?.(result.value);
      else result.rejectedWith(call.signal.reason);
      await turn();
      equal(seen(scene, clock), satisfied, "state");
      equal(call.listeners, 0, "listeners");
    },
  },
  {
    title: "has one listener for a thousand calls on one signal, and none after an abort",
    needs: "waiting",
    run: (the) => crowd(the, {}, (call) => call.abort(new Error("all"))),
  },
  {
    title: "has one listener for a thousand calls on one signal, and none after success",
    async run(the) {
      await crowd(the, {}, async (_, isOver) => {
        for (let tries = 0; tries < MANY && !isOver(); tries += 1) {
          await the.scene.satisfy();
          await turn();
        }
      });
    },
  },
  {
    title: "has one listener for a thousand calls on one signal, and none after their timeout",
    needs: "timeoutMs",
    run: (the) => crowd(the, { timeoutMs: LIMIT_MS }, () => the.clock.advance(LIMIT_MS)),
  },
  {
    title: "tries once when timeoutMs is 0",
    needs: "timeoutMs",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      const refused = start(scene, { timeoutMs: 0 });
      equal(seen(scene, clock), before, "state in the turn of the call");
      await turn();
      refused.timedOut(0);
      await scene.satisfy();
      const granted = start(scene, { timeoutMs: 0 });
      await turn();
      granted.succeeded();
    },
  },
  {
    title: "lets a call wait on though timeoutMs has passed",
    insteadOf: "timeoutMs",
    async run({ scene, clock }) {
      const results = [start(scene, { timeoutMs: 0 }), start(scene, { timeoutMs: 1 })];
      await clock.advance(1);
      for (const result of results) result.waits();
      for (const result of results) {
        if (result.status === "waiting") await scene.satisfy();
        await turn();
        result.succeeded();
      }
    },
  },
  {
    title: "ends the wait with a TimeoutError after timeoutMs, and leaves no timer",
    needs: "timeoutMs",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      const result = start(scene, { timeoutMs: LIMIT_MS });
      await clock.advance(LIMIT_MS - 1);
      result.waits();
      await clock.advance(1);
      result.timedOut(LIMIT_MS);
      equal(seen(scene, clock), before, "state");
    },
  },
  {
    title: "rejects with the abort's reason when abort and timeout fall in one turn, whichever timer was set first",
    needs: "timeoutMs",
    async run({ scene, clock }) {
      const [early, late] = [new CountingController(), new CountingController()];
      clock.setTimer(LIMIT_MS, { onTimer: () => early.abort(new Error("early")) });
      const results = [early, late].map(({ signal }) => start(scene, { signal, timeoutMs: LIMIT_MS }));
      clock.setTimer(LIMIT_MS, { onTimer: () => late.abort(new Error("late")) });
      await clock.advance(LIMIT_MS);
      results[0]?.rejectedWith(early.signal.reason);
      results[1]?.rejectedWith(late.signal.reason);
      equal([early.listeners, late.listeners, clock.timers].join(), "0,0,0", "listeners and timers");
    },
  },
  {
    title: "rejects for a bad signal and takes nothing, never throws",
    async run(the) {
      for (const signal of [{}, "signal", 1, null]) await refuses(the, { signal });
    },
  },
  {
    title: "rejects for a bad timeoutMs and takes nothing, never throws",
    needs: "timeoutMs",
    async run(the) {
      for (const timeoutMs of [-1, Number.NaN, "5", null]) await refuses(the, { timeoutMs });
    },
  },
  {
    title: "leaves nobody in line when the signal itself throws",
    needs: "waiting",
    async run({ scene, clock }) {
      const before = seen(scene, clock);
      const failure = new Error("a signal of somebody else's");
      const { signal } = new AbortController();
      signal.addEventListener = () => {
        throw failure;
      };
      const result = start(scene, { signal });
      await turn();
      result.rejectedWith(failure);
      equal(seen(scene, clock), before, "state");
    },
  },
];

/** As bugs would treat them differently: an error, no error, nothing at all, and the platform's own. */
function reasons(): unknown[] {
  return [new Error("changed my mind"), "a string", null, undefined];
}
