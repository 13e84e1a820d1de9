export type { Handler, Job } from "./attempts.ts";
export { Jobs, type JobOptions } from "./client.ts";
export type { Added, Claim, ClaimedJob, DeadJob, JobError, JobRecord, JobState, Json, NewJob } from "./job.ts";
export { LeaseLostError, SETTLED, snooze, UnrecoverableError, type Settled, type Snooze } from "./outcome.ts";
export type { JobContext } from "./run.ts";
export { isMove, MOVES, STATES, type Move, type MoveCause } from "./states.ts";
export type {
  ClaimRequest,
  JobFilter,
  Page,
  QueueStats,
  Redriven,
  Retention,
  Settlement,
  Store,
  StoreOptions,
  SweepOptions,
  Swept,
} from "./store.ts";
export type {
  AttemptFailure,
  StopOptions,
  StopReport,
  WorkerErrorContext,
  WorkerOptions,
  WorkerStats,
} from "./worker-options.ts";
export { Worker } from "./worker.ts";
