import { pino, type Logger } from 'pino'
import type { Config } from '../config/config.ts'

export interface Log {
  logger: Logger
  /** Writes what still waits. Before the process ends. */
  flush(): void
}

/** Beyond this, lines are dropped rather than kept: whoever reads them has stopped. */
const WAITING_BYTES = 4 * 1024 * 1024

/** Structured lines on stderr, each with what `base` has. Writing does not block: a reader that stalls must not stop the server. */
export function createLog(level: Config['logLevel'], base: { worker: number } | null = null): Log {
  const destination = pino.destination({ fd: 2, sync: false, maxLength: WAITING_BYTES })
  // Nobody is left to tell: the server goes on without a log.
  destination.on('error', () => undefined)
  return {
    logger: pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, destination),
    flush() {
      try {
        destination.flushSync()
      } catch {
        // As above.
      }
    },
  }
}
