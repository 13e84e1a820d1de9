export type { Added, Claim, ClaimedJob, JobError, JobRecord, JobState, Json, NewJob } from "./job.ts";
