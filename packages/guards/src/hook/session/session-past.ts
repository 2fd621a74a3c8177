/**
 * History of a session across the processes of its hooks: a line for each call, with labels and outcome, and no content.
 * Conditions on the past of a run read it; values of other processes stay unknown.
 */
import { appendFileSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { HISTORY_LABELS, type CarriedHistory } from '@tacho/policy/history/run-history.ts'
import { labelsOfCall, type ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import { digest } from '../../state.ts'
import { deleteOldFiles } from '../old-files.ts'

const KEPT_MS = 30 * 24 * 3_600_000
const FILES_MAX = 1_000
/** About 10,000 calls. The labels of a longer session are unknown. */
const BYTES_MAX = 1_048_576
const CALLS_MAX = 1_000

interface EndedCall {
  readonly toolName: string
  readonly input?: unknown
  readonly output?: unknown
  readonly error?: unknown
  /** A policy refused it. */
  readonly isRefused?: boolean | undefined
  readonly approvalId?: string | null | undefined
}

/** The labels of its output, and what conditions see of the call. */
type Line = readonly [read: readonly string[], call: CarriedHistory['calls'][number]]

export function openSessionPast(directory: string) {
  const folder = path.join(directory, 'pasts')
  const fileOf = (sessionId: string): string => path.join(folder, digest(sessionId).slice(0, 32))
  const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return {
    /** @param toolCalls of the session: if the file has fewer lines, the session began before this file existed. */
    read(sessionId: string, toolCalls: number): CarriedHistory {
      const file = fileOf(sessionId)
      const size = sizeOf(file)
      const labels = new Set<string>()
      const calls: CarriedHistory['calls'][number][] = []
      let ended = 0
      try {
        for (const line of size === 0 ? [] : readFileSync(file, 'utf8').trimEnd().split('\n')) {
          const [read, call] = JSON.parse(line) as Line
          for (const label of read) labels.add(label)
          calls.push(call)
          if (call.decision !== 'BLOCK') ended += 1
        }
      } catch {
        labels.add(HISTORY_LABELS.unknown)
      }
      if (size >= BYTES_MAX || ended < toolCalls) labels.add(HISTORY_LABELS.unknown)
      return { labels: [...labels], calls: calls.slice(-CALLS_MAX) }
    },
    /** @param rules undefined: no configuration is known */
    add(sessionId: string, ended: EndedCall, rules: readonly ToolLabels[] | undefined): void {
      const file = fileOf(sessionId)
      if (sizeOf(file) >= BYTES_MAX) return
      const { toolName: name, input, isRefused = false, approvalId } = ended
      const failure = ended.error ?? undefined
      const tool = { name, input: isObject(input) ? input : null, output: failure ?? ended.output }
      const { does, output } = rules ? labelsOfCall(rules, { tool, now: Date.now() }) : UNKNOWN
      const labels = [...new Set([...does, ...(isRefused ? [] : output)])].toSorted()
      const decision = isRefused ? 'BLOCK' : (approvalId ?? null) === null ? 'ALLOW' : 'REQUIRE_APPROVAL'
      const line: Line = [
        isRefused ? [] : output,
        { tool: name, labels, ok: !isRefused && failure === undefined, decision },
      ]
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}

const UNKNOWN = { does: [], output: [HISTORY_LABELS.unknown] }

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
