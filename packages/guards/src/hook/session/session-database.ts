/** The same as session-files.ts for opencode, which keeps all its sessions in one SQLite database. */
import { homedir } from 'node:os'
import path from 'node:path'
import type { KeptCall } from './session-files.ts'

const CALLS_MAX = 10_000

/** The database, if the agent did not name it. */
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
 * Reads the calls that ended since the last read, the oldest first, and the place up to which it has read.
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
      // A call that the agent or a hook refused has the status "error"; of a tool that does not exist, the tool is "invalid".
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
