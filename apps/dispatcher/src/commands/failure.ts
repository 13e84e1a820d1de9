/** What a command ends with when it can't do what it was asked: a message for people, and the exit code. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** 1: it went wrong. 2: it was asked for in a wrong way. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Why a system call failed, in words. */
export function systemReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const words: Readonly<Record<string, string>> = {
    EACCES: "it may not be accessed",
    EROFS: "the file system is read-only",
    ENOTDIR: "a part of the path is not a folder",
    EEXIST: "it is not a folder",
    ENOENT: "there is no such file",
    EISDIR: "it is a folder",
    ENOSPC: "the disk is full",
    EADDRINUSE: "the port is taken",
    EADDRNOTAVAIL: "this machine has no such address",
  };
  return words[code] ?? (error instanceof Error ? error.message : String(error));
}
