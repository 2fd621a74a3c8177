/** Does the same as session-files.ts for opencode, which stores all sessions in one SQLite database. */
import { homedir } from 'node:os'
import path from 'node:path'
import type { KeptCall } from './session-files.ts'

const CALLS_MAX = 10_000

/** The default path of the database, if the agent did not name one. */
export function sessionDatabase(): string {
  return path.join(homedir(), '.local/share/opencode/opencode.db')
}

interface Row {
  session_id: string
  time_created: number
  time_updated: number
  data: string
}

interface Part {
  tool?: unknown
  callID?: unknown
  state?: { status?: unknown; input?: unknown }
}

/**
 * Reads the calls that ended since the last read, oldest first. Also returns the place to continue from.
 * @param cwd only sessions of this folder; null for all.
 */
export async function readSessionDatabase(
  file: string,
  from: number,
  cwd: string | null,
): Promise<{ calls: KeptCall[]; next: number }> {
  const { DatabaseSync } = await import('node:sqlite')
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    const select = `SELECT part.session_id, part.time_created, part.time_updated, part.data
      FROM part JOIN session ON session.id = part.session_id
      WHERE part.time_updated > ? AND (? IS NULL OR session.directory = ?) ORDER BY part.time_updated LIMIT ${CALLS_MAX}`
    const rows = database.prepare(select).all(from, cwd, cwd) as unknown as Row[]
    const calls = rows.flatMap((row): KeptCall[] => {
      const { tool, callID, state } = JSON.parse(row.data) as Part
      // A refused call has the status "error". A call of an unknown tool has the tool "invalid".
      if (typeof tool !== 'string' || tool === 'invalid' || state?.status !== 'completed') return []
      const { session_id: sessionId, time_created: at } = row
      return [{ sessionId, callId: String(callID), toolName: tool, input: state.input, at }]
    })
    return { calls, next: rows.at(-1)?.time_updated ?? from }
  } catch {
    // The database does not exist yet, has another version, or is locked.
    return { calls: [], next: from }
  }
}
