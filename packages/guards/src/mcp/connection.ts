/** A server as the guard needs it: a child process or an HTTP address. */
import type { LongLine } from './lines.ts'

export interface ServerConnection {
  /** Why the command could not be started; absent if it was. Without a start, the server never answers. */
  readonly why?: string
  /** Resolves when the server has room for more. */
  send(line: string | Buffer): Promise<void>
  /** Lines that the server sends, in order. Ends with the connection. */
  readonly lines: AsyncIterable<Buffer | LongLine>
  /** Asks the server to end, and kills it if it does not. Can be called again. */
  close(): void
  /** Forwards a signal that the guard's process received. */
  signal(name: NodeJS.Signals): void
  /** Resolves with the exit code for the guard's process. */
  readonly ended: Promise<number>
}
