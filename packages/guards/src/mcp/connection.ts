/** A server as the guard needs it: a child process or an HTTP address. */
import type { LongLine } from './lines.ts'

export interface ServerConnection {
  /** Why it never answers, if its command cannot be started. */
  readonly why?: string
  /** Resolves when the server has room for more. */
  send(line: string | Buffer): Promise<void>
  /** Lines that the server sends, in order. Ends with the connection. */
  readonly lines: AsyncIterable<Buffer | LongLine>
  /** Asks the server to end, and makes sure that it does. Can be called again. */
  close(): void
  /** Passes a signal of the guard's process on. */
  signal(name: NodeJS.Signals): void
  /** Resolves with the exit code for the guard's process. */
  readonly ended: Promise<number>
}
