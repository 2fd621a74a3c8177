/** When a tool was last judged, for each project. `tacho hook status` shows it. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { digest } from '../../state.ts'
import type { AgentName } from '../agents.ts'
import { deleteOldFiles } from '../old-files.ts'

export interface LastDecision {
  /** Unix time in milliseconds. */
  readonly at: number
  readonly agent: AgentName
  readonly toolName: string
  readonly outcome: 'allowed' | 'warned' | 'refused'
}

const KEPT_MS = 30 * 24 * 3_600_000
const FILES_MAX = 1_000

export function openLastDecisions(directory: string) {
  const folder = path.join(directory, 'decisions')
  const fileOf = (project: string): string => path.join(folder, `${digest(project).slice(0, 32)}.json`)
  return {
    put(project: string, decision: LastDecision): void {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const temporary = `${fileOf(project)}.${randomUUID()}`
      writeFileSync(temporary, JSON.stringify(decision), { mode: 0o600, flag: 'wx' })
      renameSync(temporary, fileOf(project))
    },
    read(project: string): LastDecision | null {
      try {
        return JSON.parse(readFileSync(fileOf(project), 'utf8')) as LastDecision
      } catch {
        return null
      }
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}
