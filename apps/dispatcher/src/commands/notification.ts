/** `notification ID`: why it was sent, delayed, dropped, retried or given up. */
import { historyText } from "../report/history.ts";
import { openReader } from "./data.ts";
import { CommandError } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

export interface NotificationOptions {
  readonly data: string;
  readonly json?: boolean | undefined;
}

export function showNotification(id: string, { data, json }: NotificationOptions, terminal: Terminal): void {
  const reader = openReader(data);
  try {
    const history = reader.history(id);
    if (history === undefined) throw new CommandError(`there is no notification ${id} in ${data}`);
    terminal.print(json === true ? JSON.stringify(history) : historyText(history));
  } finally {
    reader.close();
  }
}
