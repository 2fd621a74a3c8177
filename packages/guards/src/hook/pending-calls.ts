/** What the hook before a tool call leaves for the hook after it: one small file for each call. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { digest } from '../state.ts'
import { deleteOldFiles } from './old-files.ts'

export interface PendingCall {
  /** Unix time in milliseconds. */
  readonly startedAt: number
  readonly inputHash: string | null
  readonly approvalId: string | null
  readonly isRefused?: boolean
}

/** A call that takes longer is recorded without these facts. */
const KEPT_MS = 24 * 3_600_000
const FILES_MAX = 1_000

export function openPendingCalls(directory: string) {
  const folder = path.join(directory, 'calls')
  const fileOf = (callId: string): string => path.join(folder, `${digest(callId).slice(0, 32)}.json`)
  return {
    put(callId: string, call: PendingCall): void {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      writeFileSync(fileOf(callId), JSON.stringify(call), { mode: 0o600 })
    },
    take(callId: string): PendingCall | null {
      try {
        const call = JSON.parse(readFileSync(fileOf(callId), 'utf8')) as PendingCall
        rmSync(fileOf(callId), { force: true })
        return call
      } catch {
        return null
      }
    },
    /** Deletes the files of calls that never ended. */
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}
