/** Keeps the write-ahead log bounded. */
import type { Database } from './database.ts'

const PAGES = 4_000
const PAGES_MAX = 16_000

interface WalState {
  busy: number
  /** Pages in the log; -1 when there is none. */
  log: number
  checkpointed: number
}

export function checkpointer(db: Database) {
  const pragma = (mode: string) => (db.pragma(`wal_checkpoint(${mode})`) as WalState[])[0] as WalState
  return {
    /** Moves the log into the store once it has grown. Call it between transactions. */
    whenGrown() {
      const { log } = pragma('NOOP')
      if (log >= PAGES) pragma(log >= PAGES_MAX ? 'RESTART' : 'PASSIVE')
    },
    /** Empties the log. */
    all: () => void pragma('TRUNCATE'),
  }
}
