import { EventEmitter } from "node:events";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { ClosedError, TimeoutError } from "../errors.ts";
import { Limiter } from "../flow/limiter.ts";
import { Queue } from "../flow/queue.ts";
import { namedEntries } from "../internal/names.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { shutdown, type ShutdownReport } from "./shutdown.ts";
import type { StopContext } from "./stoppable.ts";
import { outcomeOf } from "./task-group.stage.ts";

const never = (): Promise<void> => new Promise(() => {});

it("stops what lets work in at once, then what carries it from source to sink, then what it stands on in reverse", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock });
  const log: string[] = [];
  const slow = (name: string) => async (): Promise<void> => {
    log.push(`${name} begins`);
    await sleep(10, { clock });
    log.push(`${name} ends`);
  };
  stopping.add("database", slow("database"));
  stopping.add("cache", slow("cache"));
  stopping.add("source", slow("source"), { phase: "drain" });
  stopping.add("sink", slow("sink"), { phase: "drain" });
  stopping.add("http", slow("http"), { phase: "intake" });
  stopping.add("grpc", slow("grpc"), { phase: "intake" });
  const finished = outcomeOf(stopping.stop());
  await clock.advance(50);
  const pairs = ["source", "sink", "cache", "database"].flatMap((name) => [`${name} begins`, `${name} ends`]);
  expect(log).toEqual(["http begins", "grpc begins", "http ends", "grpc ends", ...pairs]);
  const { clean, tookMs, targets } = finished.value as ShutdownReport;
  expect([clean, tookMs]).toEqual([true, 50]);
  expect(targets.map(({ name, phase, outcome, tookMs: own }) => [name, phase, outcome, own])).toEqual([
    ["http", "intake", "stopped", 10],
    ["grpc", "intake", "stopped", 10],
    ["source", "drain", "stopped", 10],
    ["sink", "drain", "stopped", 10],
    ["cache", "close", "stopped", 10],
    ["database", "close", "stopped", 10],
  ]);
  expect(clock.timers).toBe(0);
});

it("F06.4: drains from the source to the sink, so that nothing under way is dropped", async () => {
  const clock = new VirtualClock();
  const orders = new Queue<number>(2, { clock });
  const mail = new Limiter(1, { clock });
  const delivered: number[] = [];
  const consumer = (async () => {
    for await (const order of orders) {
      await mail.run(async () => {
        await sleep(10, { clock });
        delivered.push(order);
      });
    }
  })();
  const stopping = shutdown({ clock });
  stopping.add("orders", orders, { done: consumer });
  stopping.add("mail", mail);
  for (let order = 0; order < 3; order += 1) void orders.put(order);
  const finished = outcomeOf(stopping.stop());
  await clock.advance(30);
  expect(delivered).toEqual([0, 1, 2]);
  await expect(orders.put(3)).rejects.toThrow(ClosedError);
  await expect(mail.run(() => {})).rejects.toThrow(ClosedError);
  expect(finished.value).toMatchObject({ clean: true, targets: [{ name: "orders" }, { name: "mail" }] });
});

it("F01.3: a producer that waits for space is turned away, not waited for, when its consumers have stopped", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { clock });
  queue.offer(1);
  const producer = queue.put(2);
  const stopping = shutdown({ clock });
  stopping.add("consumers", () => {}, { phase: "intake" });
  stopping.add("queue", queue);
  const finished = stopping.stop();
  await expect(producer).rejects.toThrow(ClosedError);
  expect(await finished).toMatchObject({ clean: true });
});

it("A10: ends an endless loop by its signal, as stopping begins", async () => {
  const queue = new Queue<number>(1);
  const stopping = shutdown();
  const loop = (async () => {
    for (;;) await queue.take({ signal: stopping.signal });
  })();
  stopping.add("loop", () => loop.catch(() => {}));
  expect(await stopping.stop()).toMatchObject({ clean: true });
  await expect(loop).rejects.toThrow(ClosedError);
});

it("H20: names who is still inside when its time is up, for how long, with its stats, and goes on with the next", async () => {
  const clock = new VirtualClock();
  const mail = new Limiter(2, { clock });
  void mail.run(never).catch(() => {});
  void mail.run(never).catch(() => {});
  const stopping = shutdown({ clock, timeoutMs: 1_000 });
  stopping.add("mail", mail, { timeoutMs: 200 });
  stopping.add("database", () => {});
  const finished = outcomeOf(stopping.stop());
  await clock.advance(199);
  expect(stopping.report().targets).toMatchObject([
    { name: "mail", outcome: "stopping", tookMs: 199 },
    { outcome: "running" },
  ]);
  await clock.advance(1);
  expect(finished.value).toMatchObject({
    clean: false,
    tookMs: 200,
    targets: [
      { name: "mail", outcome: "inside", tookMs: 200, stats: { running: 2 } },
      { name: "database", outcome: "stopped" },
    ],
  });
});

it("forces to end what is still inside: the calls of a limiter hear of it by their signal", async () => {
  const clock = new VirtualClock();
  const mail = new Limiter(1, { clock });
  const reasons: unknown[] = [];
  const call = mail.run(
    ({ signal }) =>
      new Promise<void>((resolve) => {
        signal?.addEventListener("abort", () => {
          reasons.push(signal.reason);
          resolve();
        });
      }),
  );
  const stopping = shutdown({ clock, timeoutMs: 100 });
  stopping.add("mail", mail, { timeoutMs: 50 });
  void stopping.stop();
  await clock.advance(50);
  await call;
  expect(reasons).toEqual([expect.any(TimeoutError)]);
  expect(await stopping.finished).toMatchObject({ clean: false, tookMs: 50 });
});

it("never hangs: at its timeoutMs it reports, has told all the others to stop, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock, timeoutMs: 400 });
  const told: string[] = [];
  const hang = (name: string) => (): Promise<void> => {
    told.push(name);
    return never();
  };
  stopping.add("database", hang("database"));
  stopping.add("cache", () => void told.push("cache"));
  stopping.add("sink", hang("sink"), { phase: "drain" });
  stopping.add("http", hang("http"), { phase: "intake" });
  const finished = outcomeOf(stopping.stop());
  await clock.advance(399);
  expect(finished.status).toBe("pending");
  await clock.advance(1);
  expect(told).toEqual(["http", "sink", "cache", "database"]);
  expect(
    (finished.value as ShutdownReport).targets.map(({ name, outcome, tookMs }) => [name, outcome, tookMs]),
  ).toEqual([
    ["http", "inside", 200], // half of what was left
    ["sink", "inside", 100],
    ["cache", "stopped", 0],
    ["database", "inside", 100],
  ]);
  expect(clock.timers).toBe(0);
});

it("gives a phase what it was given, and tells who comes too late to stop all the same", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock, timeoutMs: 100, phaseMs: { intake: 100 } });
  const told: string[] = [];
  stopping.add("quick", () => void told.push("quick"));
  stopping.add("slow", () => {
    told.push("slow");
    return never();
  });
  stopping.add("http", never, { phase: "intake" });
  const finished = outcomeOf(stopping.stop());
  await clock.advance(100);
  expect(told).toEqual(["slow", "quick"]);
  const targets = (finished.value as ShutdownReport).targets.map(({ name, outcome, tookMs }) => [
    name,
    outcome,
    tookMs,
  ]);
  expect(targets).toEqual([
    ["http", "inside", 100],
    ["slow", "inside", 0],
    ["quick", "stopped", 0],
  ]);
});

it("hands each function a signal that aborts when its time is up, or that of all", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock, timeoutMs: 80 });
  const reasons: unknown[] = [];
  const slow = ({ signal }: StopContext): Promise<void> => {
    signal.addEventListener("abort", () => reasons.push(signal.reason));
    return never();
  };
  stopping.add("slow", slow);
  stopping.add("slow with a limit", slow, { timeoutMs: 30 });
  void stopping.stop();
  await clock.advance(30);
  expect(reasons).toMatchObject([{ code: "TIMEOUT", timeoutMs: 30 }]);
  await clock.advance(50);
  expect(reasons).toMatchObject([{}, { code: "TIMEOUT", timeoutMs: 80 }]);
});

it("stops the others when one throws or rejects, and reports the errors", async () => {
  const stopping = shutdown();
  const [thrown, rejected] = [new Error("thrown"), new Error("rejected")];
  const told: string[] = [];
  stopping.add("last", () => void told.push("last"));
  stopping.add("rejects", () => Promise.reject(rejected));
  stopping.add("throws", () => {
    throw thrown;
  });
  expect(await stopping.stop()).toMatchObject({
    clean: false,
    targets: [
      { name: "throws", outcome: "failed", error: thrown },
      { name: "rejects", outcome: "failed", error: rejected },
      { name: "last", outcome: "stopped" },
    ],
  });
  expect(told).toEqual(["last"]);
});

it("waits for both the stop and `done` though one of them fails, before it stops what they stand on", async () => {
  for (const failing of ["stop", "done"]) {
    const clock = new VirtualClock();
    const stopping = shutdown({ clock });
    const failure = new Error("failed");
    const log: string[] = [];
    const half = (name: string): Promise<void> =>
      name === failing ? Promise.reject(failure) : sleep(10, { clock }).then(() => void log.push(name));
    stopping.add("database", () => void log.push("database"));
    stopping.add("orders", () => half("stop"), { phase: "drain", done: half("done") });
    const finished = outcomeOf(stopping.stop());
    await clock.advance(10);
    expect(log).toEqual([failing === "stop" ? "done" : "stop", "database"]);
    expect(finished.value).toMatchObject({ targets: [{ outcome: "failed", tookMs: 10, error: failure }, {}] });
  }
});

it("says of what can't be stopped why, and that it is still inside, when its `done` doesn't come", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock });
  const failure = new Error("can't be stopped");
  const stop = (): never => {
    throw failure;
  };
  const forced: unknown[] = [];
  stopping.add("orders", stop, { timeoutMs: 10, done: never(), force: (reason) => forced.push(reason) });
  void stopping.stop();
  await clock.advance(10);
  expect(stopping.report().targets).toMatchObject([{ outcome: "inside", tookMs: 10, error: failure }]);
  expect(forced).toEqual([expect.any(TimeoutError)]);
});

it("keeps a failure that comes after the time is up, or when forced, from the runtime and in the report", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock });
  const late = Promise.withResolvers<void>();
  const unforced = new Error("would not end");
  const force = (): never => {
    throw unforced;
  };
  stopping.add("mute", () => late.promise, { timeoutMs: 10 });
  stopping.add("stubborn", never, { timeoutMs: 10, force });
  let aborts = 0;
  const abort = (): Promise<never> => {
    aborts += 1;
    return Promise.reject(unforced);
  };
  const odd = {
    stop: never,
    abort,
    stats(): never {
      throw new Error("no stats");
    },
  };
  stopping.add("odd", odd, { phase: "close", timeoutMs: 10 });
  const unhandled = await unhandledIn(async () => {
    void stopping.stop();
    await clock.advance(30);
    late.reject(new Error("late"));
    await turn();
  });
  expect([unhandled, aborts]).toEqual([[], 1]);
  const [last, second, mute] = stopping.report().targets;
  for (const each of [last, second]) expect(each).toMatchObject({ error: unforced, outcome: "inside" });
  expect(mute).toEqual({ name: "mute", phase: "close", outcome: "inside", tookMs: 10 });
});

it("stops once, however often it is asked, and gives the same report", async () => {
  const stopping = shutdown();
  const stop = vi.fn<() => void>();
  stopping.add("one", stop);
  const first = stopping.stop();
  expect(stopping.stop()).toBe(first);
  expect(stopping.finished).toBe(first);
  await first;
  await stopping[Symbol.asyncDispose]();
  expect(stop).toHaveBeenCalledTimes(1);
});

it("refuses to add while it stops, a name it has, and what it can't stop", async () => {
  const stopping = shutdown();
  const pool = { close() {} };
  expect(stopping.add("pool", pool)).toBe(pool);
  expect(() => stopping.add("pool", pool)).toThrow("name must be new, got pool again");
  expect(() => stopping.add("nothing", {})).toThrow("target must be a function or have stop, close or a disposal");
  expect(() => stopping.add("null", null as never)).toThrow(TypeError);
  expect(() => stopping.add(1 as never, pool)).toThrow("name must be a string, got number");
  expect(() => stopping.add("late", pool, { phase: "later" as never })).toThrow(
    "phase must be one of intake, drain, close",
  );
  expect(() => stopping.add("late", pool, { timeoutMs: -1 })).toThrow("timeoutMs must be >= 0, got -1");
  expect(() => stopping.add("late", pool, { done: (() => {}) as never })).toThrow(
    "done must be a promise, got function",
  );
  expect(() => stopping.add("late", pool, { done: null as never })).toThrow("done must be a promise, got null");
  expect(() => stopping.add("late", pool, { force: 5 as never })).toThrow("force must be a function, got number");
  expect(() => shutdown({ phaseMs: { drian: 5 } as never })).toThrow(
    "phaseMs must be of the phases intake, drain, close, got drian",
  );
  expect(() => shutdown({ phaseMs: { drain: Number.NaN } })).toThrow("phaseMs.drain must be >= 0, got NaN");
  expect(() => shutdown({ phaseMs: 5_000 as never })).toThrow("phaseMs must be an object by phase, got number");
  expect([stopping.remove("pool"), stopping.remove("pool")]).toEqual([true, false]);
  stopping.add("kept", pool);
  const finished = stopping.stop();
  expect(() => stopping.add("late", pool)).toThrow(ClosedError);
  expect(stopping.remove("kept")).toBe(false);
  expect((await finished).targets).toMatchObject([{ name: "kept" }]);
});

it("begins at the first signal of the process, makes haste at the second, and leaves no listener", async () => {
  const clock = new VirtualClock();
  const before = [process.listenerCount("SIGUSR2"), process.listenerCount("SIGWINCH")];
  const stopping = shutdown({ signals: ["SIGUSR2", "SIGWINCH"], clock });
  const forced: unknown[] = [];
  stopping.add("http", never, { phase: "intake", force: (reason) => forced.push(reason) });
  process.emit("SIGUSR2", "SIGUSR2");
  expect(stopping.signal.aborted).toBe(true);
  await clock.advance(10);
  expect(stopping.stats().phase).toBe("intake");
  process.emit("SIGWINCH", "SIGWINCH");
  const report = await stopping.finished;
  expect(report).toMatchObject({ by: "SIGUSR2", clean: false, tookMs: 10, targets: [{ outcome: "inside" }] });
  expect(forced).toEqual([expect.any(ClosedError)]);
  expect([process.listenerCount("SIGUSR2"), process.listenerCount("SIGWINCH")]).toEqual(before);
  expect(clock.timers).toBe(0);
});

it("takes the first signal for the first though it stops already, and a signal named twice for one", async () => {
  const stopping = shutdown({ signals: ["SIGUSR2", "SIGUSR2"], clock: new VirtualClock() });
  stopping.add("http", never, { phase: "intake" });
  void stopping.stop();
  process.emit("SIGUSR2", "SIGUSR2");
  await turn();
  expect(stopping.report().targets).toMatchObject([{ outcome: "stopping" }]);
  process.emit("SIGUSR2", "SIGUSR2");
  expect(await stopping.finished).toMatchObject({ by: undefined, targets: [{ outcome: "inside" }] });
});

it("refuses signals that it can't listen to, and then listens to none", () => {
  const refusing = new EventEmitter().on("newListener", (signal) => {
    if (signal === "SIGKILL") throw new Error("uv_signal_start EINVAL"); // as Node does, but in its main thread alone
  });
  vi.stubGlobal("process", refusing);
  try {
    expect(() => shutdown({ signals: ["SIGUSR2", "SIGKILL"] })).toThrow(
      "signals must be ones that the process can listen to, got SIGKILL",
    );
    expect(() => shutdown({ signals: ["SIGUSR2"], name: 5 as never })).toThrow("name must be a string, got number");
    expect(() => shutdown({ signals: "SIGTERM" as never })).toThrow("signals must be a list of strings, got string");
    expect(() => shutdown({ signals: [15] as never })).toThrow("signals must be a list of strings, got number in it");
    expect(refusing.listenerCount("SIGUSR2")).toBe(0);
  } finally {
    vi.unstubAllGlobals();
  }
});

it("keeps from the runtime what `done` rejects with from when stopping begins, and reports it in its turn", async () => {
  const stopping = shutdown({ clock: new VirtualClock() });
  const [ready, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const loop = new Promise<never>((_, reject) => {
    stopping.signal.addEventListener("abort", () => reject(stopping.signal.reason));
  });
  const thrown = new Error("thrown");
  const stop = (): never => {
    throw thrown;
  };
  stopping.add("throws", stop, { phase: "intake", done: late.promise });
  stopping.add("http", () => ready.promise, { phase: "intake" });
  stopping.add("loop", () => {}, { phase: "drain", done: loop });
  const unhandled = await unhandledIn(async () => {
    void stopping.stop();
    late.reject(new Error("late"));
    await turn();
    expect(stopping.stats().phase).toBe("intake");
    ready.resolve();
    await stopping.finished;
  });
  expect(unhandled).toEqual([]);
  expect(stopping.report().targets).toMatchObject([
    { name: "throws", error: thrown },
    { name: "http", outcome: "stopped" },
    { name: "loop", outcome: "failed", error: stopping.signal.reason },
  ]);
});

it("does without signals where the runtime has no process", () => {
  vi.stubGlobal("process", undefined);
  try {
    expect(shutdown({ signals: ["SIGTERM"] }).stats().phase).toBe("running");
  } finally {
    vi.unstubAllGlobals();
  }
});

it("stops at once when asked to, waiting for nobody", async () => {
  const stopping = shutdown({ clock: new VirtualClock() });
  const told: string[] = [];
  stopping.add("database", () => void told.push("database"));
  const says = (what: string) => (): void => void told.push(what);
  const server = { listening: true, listen() {}, close: says("close"), closeAllConnections: says("cut") };
  stopping.add("http", server);
  const report = await stopping.stopNow();
  expect(report.targets).toMatchObject([{ outcome: "inside" }, { outcome: "stopped" }]);
  expect(told).toEqual(["close", "cut", "database"]);
});

it("knows by what a thing can do when and how to stop it", async () => {
  const log: string[] = [];
  const say =
    (what: string) =>
    (...given: unknown[]): void =>
      void log.push(given.length === 0 || what.endsWith("drain") ? what : `${what} with ${given.length}`);
  const stopping = shutdown();
  stopping.add("function", () => say("function")());
  stopping.add("disposable", { [Symbol.dispose]: say("dispose") });
  stopping.add("async disposable", { [Symbol.asyncDispose]: say("asyncDispose"), [Symbol.dispose]: say("not this") });
  stopping.add("client", { close: say("client close"), [Symbol.asyncDispose]: say("not this") });
  stopping.add("their queue", { close: say("their close"), drain: say("not this") });
  const stats = say("not this");
  stopping.add("pool", { stats, acquire: stats, close: say("pool close"), drain: say("pool drain") });
  stopping.add("queue", { put: stats, close: say("queue close") });
  stopping.add("limiter", { stats, close: say("limiter close"), drain: say("limiter drain") });
  stopping.add("worker", { stop: say("worker stop"), close: say("not this") });
  stopping.add("framework", { listen: stats, close: say("framework close") });
  const close = (done: () => void): void => {
    log.push("server close");
    done();
  };
  stopping.add("server", { listen: stats, listening: true, close });
  stopping.add("no server", { listen: stats, listening: false, close: say("not this") });
  const { targets } = await stopping.stop();
  expect(log).toEqual([
    "worker stop",
    "framework close",
    "server close",
    "queue close",
    "limiter close",
    "limiter drain",
    "pool close",
    "pool drain",
    "their close",
    "client close",
    "asyncDispose",
    "dispose",
    "function",
  ]);
  expect(targets.map(({ name, phase }) => `${name}: ${phase}`)).toEqual([
    "worker: intake",
    "framework: intake",
    "server: intake",
    "no server: intake",
    "queue: drain",
    "limiter: drain",
    "pool: close",
    "their queue: close",
    "client: close",
    "async disposable: close",
    "disposable: close",
    "function: close",
  ]);
});

it("lets a server of Node answer what it has accepted, and cuts what is left when its time is up", async () => {
  const clock = new VirtualClock();
  const answers: (() => void)[] = [];
  const both = Promise.withResolvers<void>();
  const server = createServer((_, response) => {
    if (answers.push(() => response.end("done")) === 2) both.resolve();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const ask = (): Promise<string> =>
    new Promise((resolve) => {
      const request = get({ port, host: "127.0.0.1" }, (response) => {
        response.setEncoding("utf8").once("data", resolve);
      });
      request.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  const asked = [ask(), ask()];
  await both.promise;
  const stopping = shutdown({ clock, timeoutMs: 1_000 });
  stopping.add("http", server);
  const finished = stopping.stop();
  expect(server.listening).toBe(false);
  answers[0]?.();
  expect(await Promise.race(asked)).toBe("done");
  expect(stopping.report().targets).toMatchObject([{ outcome: "stopping" }]);
  await clock.advance(500);
  expect((await Promise.all(asked)).toSorted()).toEqual(["ECONNRESET", "done"]);
  expect(await finished).toMatchObject({ clean: false, targets: [{ name: "http", outcome: "inside", tookMs: 500 }] });
});

it("tells by name how far it is", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ name: "app", clock });
  const done = Promise.withResolvers<void>();
  stopping.add("http", () => {}, { phase: "intake" });
  stopping.add("bad", () => Promise.reject(new Error("bad")), { phase: "intake" });
  stopping.add("orders", () => {}, { phase: "drain", done: done.promise });
  const entry = namedEntries().find(({ name }) => name === "app");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["shutdown", stopping]);
  expect(stopping.stats()).toEqual({ targets: 3, phase: "running", stopped: 0, failed: 0, inside: 0 });
  expect(stopping.report()).toMatchObject({ clean: false, tookMs: 0 });
  void stopping.stop();
  await clock.advance(5);
  expect(stopping.stats()).toEqual({ targets: 3, phase: "drain", stopped: 1, failed: 1, inside: 0 });
  done.resolve();
  expect(await stopping.finished).toMatchObject({ tookMs: 5, by: undefined });
  await clock.advance(5);
  expect(stopping.report()).toEqual(await stopping.finished);
  expect(stopping.stats().phase).toBe("over");
});
