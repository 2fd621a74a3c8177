import { write } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { pino } from 'pino'
import type { Config } from '../config/config.ts'

/** Above this size, lines are dropped, because the reader has stopped. */
const WAITING_CHARS = 4 * 1_048_576
/** Small, so that a slow reader is not mistaken for one that has stopped. */
const WRITE_BYTES = 65_536
const FULL_PIPE_MS = 50
const READER_STOPPED_MS = 2_000
const STDERR = 2

const writeBytes = promisify(write)

/** Writes do not block, so a stalled reader cannot stop the server. Each line has the fields of `base`. */
export function createLog(level: Config['logLevel'], base: { worker: number } | null = null) {
  const lines = createLines()
  return {
    droppedLines: lines.dropped,
    logger: pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, lines),
    async leave(code: number): Promise<never> {
      for (let before = -1; lines.isWriting();) {
        // process.exit waits for a write that has begun. If the reader has stopped, that wait never ends.
        if (lines.writes() === before) process.kill(process.pid, 'SIGKILL')
        before = lines.writes()
        await Promise.race([lines.idle(), wait(READER_STOPPED_MS)])
      }
      process.exit(code)
    },
  }
}

/**
 * Replaces pino's destination, whose flush before the exit never returns if the reader has closed the pipe, or the disk
 * is full.
 */
function createLines() {
  let waiting = ''
  let waitingLines = 0
  let writing: Promise<void> | null = null
  let writes = 0
  /** `untold`: dropped lines that the log has not reported yet. */
  let dropped = { all: 0, untold: 0 }

  async function writeWaiting(): Promise<void> {
    while (waiting !== '') {
      const bytes = Buffer.from(waiting)
      waiting = ''
      // If the reader has closed the pipe, or the disk is full, the server continues without these lines.
      const lines = waitingLines
      waitingLines = 0
      const isWritten = await writeAll(bytes).then(
        () => true,
        () => false,
      )
      writes++
      if (!isWritten) drop(lines)
      else if (dropped.untold > 0) tellDropped()
    }
    writing = null
  }

  async function writeAll(bytes: Buffer): Promise<void> {
    for (let from = 0; from < bytes.length;) {
      try {
        from += (await writeBytes(STDERR, bytes, from, Math.min(WRITE_BYTES, bytes.length - from))).bytesWritten
        writes++
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
        await wait(FULL_PIPE_MS)
      }
    }
  }

  function drop(lines: number): void {
    dropped = { all: dropped.all + lines, untold: dropped.untold + lines }
  }

  /** Called when the reader reads again. */
  function tellDropped(): void {
    const line = { level: 40, time: new Date().toISOString(), droppedLines: dropped.untold }
    dropped.untold = 0
    waiting += `${JSON.stringify({ ...line, msg: 'log lines could not be written' })}\n`
    waitingLines++
  }

  return {
    dropped: () => dropped.all,
    write(line: string): void {
      if (waiting.length + line.length > WAITING_CHARS) return drop(1)
      waiting += line
      waitingLines++
      writing ??= writeWaiting()
    },
    isWriting: () => writing !== null,
    idle: () => writing ?? Promise.resolve(),
    writes: () => writes,
  }
}
