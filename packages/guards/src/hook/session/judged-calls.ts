/**
 * Calls of a session that hooks have judged, stored for later hooks: a file for each session, with a line for each call.
 * Appending needs no lock. All environments of a user share the files: it does not matter which of them judged a call.
 */
import { appendFileSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { digest } from '../../state.ts'
import { deleteOldFiles } from '../old-files.ts'

const ID_CHARS = 24
const CALLS_MAX = 100_000
/** Older calls are not compared: the service takes no events that are older than 30 days. */
export const JUDGED_KEPT_MS = 29 * 24 * 3_600_000
const FILES_MAX = 10_000

export function openJudgedCalls(root: string) {
  const folder = path.join(root, 'judged')
  const fileOf = (sessionId: string, more = ''): string => path.join(folder, `${digest(sessionId).slice(0, 32)}${more}`)
  const short = (callId: string): string => digest(callId).slice(0, ID_CHARS)
  const textOf = (file: string): string => {
    try {
      return readFileSync(file, 'utf8')
    } catch {
      return ''
    }
  }
  const makeFolder = (): void => void mkdirSync(folder, { recursive: true, mode: 0o700 })
  return {
    /** Adds calls that the hook judged or reported as unjudged. */
    add(sessionId: string, callIds: readonly string[]): void {
      const file = fileOf(sessionId)
      if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > CALLS_MAX * (ID_CHARS + 1)) return
      makeFolder()
      appendFileSync(file, callIds.map((callId) => `${short(callId)}\n`).join(''), { mode: 0o600 })
    },
    /** Returns a function that reports whether a call of this session was added. */
    of(sessionId: string): (callId: string) => boolean {
      const known = new Set(textOf(fileOf(sessionId)).split('\n'))
      return (callId) => known.has(short(callId))
    },
    /** When this user's hook first ran: it has not seen older calls. */
    since(now: number): number {
      makeFolder()
      const file = path.join(root, 'judged-since')
      try {
        writeFileSync(file, String(now), { mode: 0o600, flag: 'wx' })
        return now
      } catch {
        // If the file is damaged, no call counts as older than the hook.
        return Number(textOf(file)) || 0
      }
    },
    /** Place up to which a file was read. */
    place: (file: string): number => Number(textOf(fileOf(file, '.place'))) || 0,
    setPlace(file: string, bytes: number): void {
      makeFolder()
      writeFileSync(fileOf(file, '.place'), String(bytes), { mode: 0o600 })
    },
    /** Time of the last check of these sessions' files. */
    swept(which: string): number {
      return statSync(fileOf(which, '.swept'), { throwIfNoEntry: false })?.mtimeMs ?? 0
    },
    setSwept(which: string, now: number): void {
      makeFolder()
      writeFileSync(fileOf(which, '.swept'), '', { mode: 0o600 })
      utimesSync(fileOf(which, '.swept'), now / 1_000, now / 1_000)
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: JUDGED_KEPT_MS, filesMax: FILES_MAX })
    },
  }
}

export type JudgedCalls = ReturnType<typeof openJudgedCalls>
