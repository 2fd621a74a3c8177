/** Stores the calls that people rejected in a session for its later hooks: a small file for each session with a rejection. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { Refusals, type Refusal } from '../../refusals.ts'
import { digest } from '../../state.ts'
import { deleteOldFiles } from '../old-files.ts'

const KEPT_MS = 30 * 24 * 3_600_000
const FILES_MAX = 1_000

export function openSessionRefusals(directory: string) {
  const folder = path.join(directory, 'refusals')
  const fileOf = (sessionId: string): string => path.join(folder, `${digest(sessionId).slice(0, 32)}.json`)
  return {
    /** Null if nothing was rejected yet. */
    read(sessionId: string): Refusals | null {
      try {
        return new Refusals(JSON.parse(readFileSync(fileOf(sessionId), 'utf8')) as [string, Refusal][])
      } catch {
        return null
      }
    },
    write(sessionId: string, refusals: Refusals): void {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const temporary = `${fileOf(sessionId)}.${randomUUID()}`
      writeFileSync(temporary, JSON.stringify(refusals.entries()), { mode: 0o600, flag: 'wx' })
      renameSync(temporary, fileOf(sessionId))
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}
