import { pino, type Logger } from 'pino'
import type { Config } from '../config/config.ts'

export interface Log {
  logger: Logger
  /** Writes buffered lines before the process ends. */
  flush(): void
}

/** Beyond this size, lines are dropped: the reader has stopped. */
const WAITING_BYTES = 4 * 1024 * 1024

/**
 * Structured lines on stderr, each with the fields of `base`. Writes do not block, so a stalled reader cannot stop the
 * server.
 */
export function createLog(level: Config['logLevel'], base: { worker: number } | null = null): Log {
  const destination = pino.destination({ fd: 2, sync: false, maxLength: WAITING_BYTES })
  // The reader has closed the pipe; the server continues without a log.
  destination.on('error', () => undefined)
  return {
    logger: pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, destination),
    flush() {
      try {
        destination.flushSync()
      } catch {
        // The reader has closed the pipe.
      }
    },
  }
}
