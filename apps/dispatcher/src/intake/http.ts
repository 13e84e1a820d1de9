/**
 * The dispatcher's HTTP side. An event is accepted once it is durable, and only then answered with 202.
 *
 * `POST /v1/events` takes one CloudEvent (`application/cloudevents+json`, or `ce-…` headers with a JSON body) or a batch
 * (`application/cloudevents-batch+json`). The answer lists what became of each. Of a batch the good elements are accepted
 * though others are not, so a client must look at `refused`; only where none is good the answer is 422.
 *
 * `GET /v1/notifications?source=…&event=…` lists what became of an event, `GET /v1/notifications/:id` the history of one.
 */
import type { Json } from "@sluice/jobs";
import { Hono } from "hono";
import type { Logger } from "pino";
import type { Intake } from "../config/config.ts";
import { type Accepted, type EventSink, IntakeFullError } from "../model.ts";
import type { NotificationHistory, NotificationSummary } from "../model.ts";
import { Bodies } from "./bodies.ts";
import type { ParsedEvent, Refusal } from "./cloud-event.ts";
import { modeOf, type ReadEvents, readEvents } from "./modes.ts";
import { problem, retryAfter } from "./problem.ts";

export interface IntakeAppOptions {
  readonly sink: EventSink;
  readonly config: Intake;
  readonly reader: HistoryReader;
  /** What `GET /healthz` answers: 200 if `ok`, else 503. */
  readonly health: () => Health;
  readonly log: Logger;
}

export interface HistoryReader {
  history(id: string): NotificationHistory | undefined;
  /** The first `max` notifications of an event. */
  ofEvent(source: string, id: string, max: number): readonly NotificationSummary[];
}

export type Health = Readonly<Record<string, Json>> & { readonly ok: boolean };

/** The answer to events of which at least one was accepted, now or earlier. */
export interface IntakeAnswer {
  readonly accepted: number;
  readonly duplicates: number;
  readonly refused: number;
  /** In the order in which they were sent. */
  readonly events: readonly EventOutcome[];
}

export type EventOutcome =
  | (Accepted & { readonly index: number; readonly source: string; readonly id: string })
  | { readonly index: number; readonly outcome: "refused"; readonly errors: Refusal["errors"] };

/** Bodies held at once, as a multiple of the greatest: memory is bounded, however many clients there are. */
const MAX_HELD_BODIES = 16;
/** Of notifications in an answer. */
const LIST = { limit: 100, max: 1_000 };
/** Where nothing else is known. */
const RETRY_MS = 1_000;

export function intakeApp(options: IntakeAppOptions): Hono {
  const { config, reader, health, log } = options;
  const { maxBodyBytes } = config;
  const bodies = new Bodies({ maxBytes: maxBodyBytes, maxTotalBytes: MAX_HELD_BODIES * maxBodyBytes });
  const app = new Hono();

  app.post("/v1/events", async (c) => {
    const mode = modeOf(c.req.raw.headers);
    if (typeof mode === "object") return problem("unsupported-media-type", mode.fault);
    return bodies.use(c.req.raw, async (body) => {
      if ("bytes" in body) return answer(readEvents(mode, body.bytes, c.req.raw.headers, config), options);
      if (body.refusal === "too-large") return problem("too-large", `the body must have at most ${maxBodyBytes} bytes`);
      if (body.refusal === "too-many") return full("the bodies of other requests take all the room", RETRY_MS);
      log.debug({ err: body.error }, "a request broke off");
      return problem("unreadable-body", "the body broke off");
    });
  });

  app.get("/v1/notifications/:id", (c) => {
    const history = reader.history(c.req.param("id"));
    return history === undefined ? problem("not-found", "there is no such notification") : c.json(history);
  });

  app.get("/v1/notifications", (c) => {
    const { source, event, limit = `${LIST.limit}` } = c.req.query();
    const max = /^\d{1,9}$/.test(limit) ? Number(limit) : 0;
    if (source === undefined || event === undefined || max < 1 || max > LIST.max) {
      return problem("invalid-query", `give source and event, and a limit from 1 to ${LIST.max} if any`);
    }
    return c.json({ notifications: reader.ofEvent(source, event, max) });
  });

  app.get("/healthz", (c) => {
    const state = health();
    return c.json(state, state.ok ? 200 : 503);
  });

  for (const [path, allow] of [
    ["/v1/events", "POST"],
    ["/v1/notifications", "GET, HEAD"],
    ["/v1/notifications/:id", "GET, HEAD"],
    ["/healthz", "GET, HEAD"],
  ] as const) {
    app.all(path, () => problem("method-not-allowed", `allowed here: ${allow}`, { headers: { allow } }));
  }
  app.notFound(() => problem("not-found", "there is nothing at this path"));
  app.onError((error, c) => {
    log.error({ err: error, method: c.req.method, path: c.req.path }, "a request failed");
    return problem("internal-error", "the dispatcher's log says more");
  });
  return app;
}

async function answer(read: ReadEvents, { sink, log }: IntakeAppOptions): Promise<Response> {
  if ("problem" in read) return read.problem;
  const events = read.parsed.flatMap((each) => ("event" in each ? [each.event] : []));
  if (events.length === 0 && read.parsed.length > 0) return refuse(read.parsed.filter((each) => "errors" in each));
  let outcomes: Accepted[];
  try {
    outcomes = events.length === 0 ? [] : await sink.accept(events);
  } catch (error) {
    if (error instanceof IntakeFullError) return full(error.message, error.retryAfterMs);
    log.error({ err: error, events: events.length }, "events could not be stored");
    return problem("store-unavailable", "nothing was accepted; try again", { headers: retryAfter(RETRY_MS) });
  }
  return Response.json(toAnswer(read.parsed, outcomes), { status: 202 });
}

/** Nothing is good. */
function refuse(refusals: readonly Refusal[]): Response {
  const errors = refusals.flatMap((refusal) => refusal.errors);
  const isLarge = refusals.every(({ reason }) => reason === "too-large");
  return problem(isLarge ? "too-large" : "invalid-event", "nothing was accepted", { errors });
}

function full(detail: string, retryAfterMs: number): Response {
  return problem("intake-full", detail, { headers: retryAfter(retryAfterMs) });
}

function toAnswer(parsed: readonly ParsedEvent[], outcomes: readonly Accepted[]): IntakeAnswer {
  const left = outcomes.values();
  const events = parsed.map((each, index): EventOutcome => {
    if ("errors" in each) return { index, outcome: "refused", errors: each.errors };
    const { source, id } = each.event;
    const next = left.next();
    if (next.done === true) throw new Error(`the sink must answer for each event, got ${outcomes.length} answers`);
    return { index, source, id, outcome: next.value.outcome };
  });
  const count = (outcome: EventOutcome["outcome"]): number => events.filter((each) => each.outcome === outcome).length;
  return { accepted: count("accepted"), duplicates: count("duplicate"), refused: count("refused"), events };
}
