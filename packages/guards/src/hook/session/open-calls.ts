/**
 * The calls of tools between the hook before and the hook after them: one small file for each call, whose name has its state.
 *
 *   judged --any later hook--> started --hook after the tool--> (deleted)
 *      |                          \--next prompt, end of its sub-agent or session, a day--> closed --a late hook after the
 *      |                                                                                           tool--> (deleted)
 *      |--refused: never starts
 *      \--declined by the person in front of the agent, as the file of the session says--> closed, never ran
 *
 * A hook before a tool has no time to record: it leaves what the later hooks need for TOOL_START.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { digest } from '../../state.ts'
import type { AgentName } from '../agents.ts'
import { deleteOldFiles } from '../old-files.ts'
import type { HookRecord, Subagent } from '../record.ts'

/** Facts that the hook before a tool knows. */
export interface OpenCall {
  /** Unix time in milliseconds. */
  readonly startedAt: number
  readonly agent: AgentName
  readonly sessionId: string
  /** The sub-agent that calls the tool. */
  readonly subagent?: Subagent | undefined
  readonly toolName: string
  /** The model's id of the call. */
  readonly toolCallId?: string | undefined
  /** Missing if it is large: the hook after the tool has it too. */
  readonly input?: unknown
  /** The hash that was judged. With masked members, it differs from `plainHash`. */
  readonly inputHash: string | null
  /** Shows whether the tool ran with this input. */
  readonly plainHash: string | null
  readonly approvalId: string | null
  readonly isRefused?: boolean
}

/** States in the order in which a call passes them. */
const STATES = ['judged', 'refused', 'started', 'closed'] as const
type State = (typeof STATES)[number]

export interface StoredCall extends OpenCall {
  readonly file: string
  readonly state: State
  /** The span of all events of the call. */
  readonly spanId: string
}

const INPUT_CHARS_MAX = 262_144
/** Longest time of a tool call. */
export const OPEN_MS = 24 * 3_600_000
const KEPT_MS = 2 * OPEN_MS
const FILES_MAX = 1_000
const SESSION_CHARS = 16
const CALL_CHARS = 32
const SPAN_CHARS = 16

export function openCalls(directory: string) {
  const folder = path.join(directory, 'calls')
  const nameOf = ({ sessionId, callId }: HookRecord): string =>
    sessionPart(sessionId) + digest(`${sessionId}\n${callId}`).slice(0, CALL_CHARS)

  function list(prefix: string, states: readonly State[]): StoredCall[] {
    let names: string[]
    try {
      names = readdirSync(folder)
    } catch {
      return []
    }
    return names
      .filter((name) => name.startsWith(prefix))
      .flatMap((name) => {
        const { name: file, ext } = path.parse(name)
        const state = states.find((each) => ext === `.${each}`)
        return (state && read(file, state)) ?? []
      })
      .sort((a, b) => a.startedAt - b.startedAt)
  }

  function read(file: string, state: State): StoredCall | null {
    try {
      const call = JSON.parse(readFileSync(path.join(folder, `${file}.${state}`), 'utf8')) as OpenCall
      return { ...call, file, state, spanId: digest(file).slice(0, SPAN_CHARS) }
    } catch {
      // Another hook took the file.
      return null
    }
  }

  return {
    put(record: HookRecord, call: OpenCall): void {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const { input, ...facts } = call
      const keptCall = (JSON.stringify(input) ?? '').length <= INPUT_CHARS_MAX ? call : facts
      // Without an id, tell equal calls apart by their start: they may run at once.
      const number = record.toolCallId === undefined ? `-${call.startedAt}` : ''
      const file = `${nameOf(record)}${number}.${call.isRefused ? 'refused' : 'judged'}`
      writeFileSync(path.join(folder, file), JSON.stringify(keptCall), { mode: 0o600 })
    },
    /** Finds the call that a hook after a tool reports. Of equal calls without ids, the last: earlier ones may have failed. */
    take(record: HookRecord): StoredCall | null {
      const call = list(nameOf(record), STATES).at(-1)
      // Remove the file in all states: another hook may move it forward meanwhile.
      if (call) for (const state of STATES) rmSync(path.join(folder, `${call.file}.${state}`), { force: true })
      return call ?? null
    },
    /** The oldest first. */
    in: (states: readonly State[], sessionId?: string): StoredCall[] =>
      list(sessionId === undefined ? '' : sessionPart(sessionId), states),
    move({ file, state }: StoredCall, next: State): void {
      try {
        renameSync(path.join(folder, `${file}.${state}`), path.join(folder, `${file}.${next}`))
      } catch {
        // Another hook took the file.
      }
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}

const sessionPart = (sessionId: string): string => digest(sessionId).slice(0, SESSION_CHARS)

export type OpenCalls = ReturnType<typeof openCalls>
