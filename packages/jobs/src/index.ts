export type { Added, Claim, ClaimedJob, JobError, JobRecord, JobState, Json, NewJob } from "./job.ts";
export { isMove, MOVES, STATES, type Move, type MoveCause } from "./states.ts";
export type {
  AddOptions,
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
