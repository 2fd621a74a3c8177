/**
 * Counts the tool calls of a session across the processes of its hooks: a file for each session, with one byte for each
 * call. Appending needs no lock. A signature would not help: another program of the same user could delete the file.
 */
import { appendFileSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { digest } from '../../state.ts'
import { deleteOldFiles } from '../old-files.ts'

const CALLS_MAX = 1_000_000
/** A session that is resumed later counts from zero. */
const KEPT_MS = 30 * 24 * 3_600_000
const FILES_MAX = 1_000

export function openSessionCalls(directory: string) {
  const folder = path.join(directory, 'sessions')
  const fileOf = (sessionId: string): string => path.join(folder, digest(sessionId).slice(0, 32))
  function count(sessionId: string): number {
    return statSync(fileOf(sessionId), { throwIfNoEntry: false })?.size ?? 0
  }
  return {
    count,
    add(sessionId: string): void {
      if (count(sessionId) >= CALLS_MAX) return
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      appendFileSync(fileOf(sessionId), '.', { mode: 0o600 })
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}
