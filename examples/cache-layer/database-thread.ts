/** The thread of a `Database`: one statement in, its rows or what was wrong with it out. */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Answer, Question, Setup } from "./database.ts";

const { path, busyMs } = workerData as Setup;
const connection = new DatabaseSync(path, { timeout: busyMs });
const prepared = new Map<string, StatementSync>(); // as many as the program has

parentPort?.on("message", (question: Question | undefined) => {
  if (question !== undefined) return parentPort?.postMessage(answer(question));
  connection.close();
  return parentPort?.close();
});

function answer({ sql, values }: Question): Answer {
  try {
    const statement = prepared.get(sql) ?? connection.prepare(sql);
    prepared.set(sql, statement);
    return { rows: statement.all(...values) };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}
