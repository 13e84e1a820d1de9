export { type Alarm, type AlarmOptions, type AlarmRule, type AlarmWatch, watchAlarms } from "./alarms.ts";
export type { Stats } from "../internal/names.ts";
export { declareDependency, type DependencyOptions } from "./dependency.ts";
export { doctor, type DoctorOptions } from "./doctor.ts";
export { activity, enable, type EnableOptions, type Watch } from "./enable.ts";
export { type EventName, type ObservedEvent, onEvent } from "./events.ts";
export { type Named, type NamedFailure, type NamedStats, named } from "./named.ts";
export type { DiagnosisId, Fact, Report } from "./report.ts";
export type { Subject } from "./subject.ts";
