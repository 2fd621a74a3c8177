/**
 * Finds the call that began a sub-agent. The hooks of a sub-agent name only its id and its kind, and two of one kind may
 * run at once.
 *
 *   begun --one call fits; its prompt or its result names the call--> joined: HANDOFF below the call
 *     \--the session ends--> HANDOFF without a call
 *
 * The steps of a sub-agent have its id as their parent, and the HANDOFF is the span with this id.
 */
import type { Tacho } from '@tacho/sdk'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { digest } from '../../state.ts'
import type { AgentName } from '../agents.ts'
import { deleteOldFiles } from '../old-files.ts'
import type { OpenCall, OpenCalls, StoredCall } from './open-calls.ts'
import { subagentOf, textOf, type HookRecord } from '../record.ts'
import { headOf } from './session-files.ts'

/** Tools that begin a sub-agent, in Claude Code and Qwen Code, opencode, Codex. */
const DELEGATING: ReadonlySet<string> = new Set(['Agent', 'Task', 'agent', 'task', 'spawn_agent'])

const KEPT_MS = 30 * 24 * 3_600_000
const FILES_MAX = 1_000
const SESSION_CHARS = 16

interface Begun {
  readonly agent: AgentName
  readonly sessionId: string
  readonly id: string
  readonly name: string
  readonly startedAt: number
  readonly isStopped?: boolean
  /** The span of the call, once it is known. */
  readonly callSpanId?: string
}

type DelegatingCall = Omit<StoredCall, 'state' | 'file'>

export function openHandoffs(directory: string, tacho: Tacho, calls: OpenCalls) {
  const folder = path.join(directory, 'subagents')
  const prefixOf = (sessionId: string): string => digest(sessionId).slice(0, SESSION_CHARS)
  const fileOf = ({ sessionId, id }: Begun): string =>
    path.join(folder, `${prefixOf(sessionId)}${digest(id).slice(0, SESSION_CHARS)}.json`)

  function write(begun: Begun): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(fileOf(begun), JSON.stringify(begun), { mode: 0o600 })
  }

  function all(sessionId: string): Begun[] {
    try {
      const names = readdirSync(folder).filter((name) => name.startsWith(prefixOf(sessionId)))
      return names.map((name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Begun)
    } catch {
      return []
    }
  }

  function hand(begun: Begun, call: DelegatingCall | null): void {
    const { agent, sessionId, id, name, startedAt } = begun
    const names = { runId: sessionId, sessionId, agentId: agent, agentName: agent }
    const run = tacho.startRun({ ...names, parentSpanId: call?.spanId })
    const from = call?.subagent?.name
    const toolCallId = call?.toolCallId
    run.record({
      type: 'HANDOFF',
      label: `${from ?? agent} to ${name}`,
      payload: { ...(from !== undefined && { agent: from }), from: from ?? agent, to: name, toolCallId },
      at: startedAt,
      spanId: id,
      eventId: `${agent}-${digest(`handoff\n${sessionId}\n${id}`)}`,
    })
    write({ ...begun, callSpanId: call?.spanId ?? '' })
  }

  /** Calls that may have begun this sub-agent: they are of its kind and began no other. */
  function callsFor({ sessionId, name }: Begun): StoredCall[] {
    const taken = new Set(all(sessionId).map(({ callSpanId }) => callSpanId))
    return calls
      .in(['judged', 'started'], sessionId)
      .filter((call) => DELEGATING.has(call.toolName) && !taken.has(call.spanId) && isOfKind(call, name))
  }

  return {
    /** Handles the begin or end of a sub-agent. */
    step(agent: AgentName, record: HookRecord): void {
      const { sessionId, event, fields } = record
      const subagent = subagentOf(record)
      if (!subagent) return
      const known = all(sessionId).find(({ id }) => id === subagent.id)
      const begun = {
        agent,
        sessionId,
        startedAt: Date.now(),
        ...subagent,
        ...known,
        isStopped: event === 'SubagentStop',
      }
      write(begun)
      if (known?.callSpanId !== undefined) return
      const fitting = callsFor(begun)
      const rivals = all(sessionId).filter(({ name, callSpanId }) => name === begun.name && callSpanId === undefined)
      const head = headOf(textOf(fields['agent_transcript_path']) ?? '')
      const named = fitting.filter((call) => head !== '' && head.includes(promptOf(call)))
      const [call] = named.length === 1 ? named : fitting.length === 1 && rivals.length === 1 ? fitting : []
      if (call) hand(begun, call)
    },
    /** Handles the end of a call that may have begun a sub-agent. */
    ended(call: DelegatingCall, response: unknown): void {
      if (!DELEGATING.has(call.toolName)) return
      const open = all(call.sessionId).filter(({ callSpanId }) => callSpanId === undefined)
      const text = JSON.stringify(response) ?? ''
      const ofKind = open.filter(({ name }) => isOfKind(call, name))
      const stopped = ofKind.filter(({ isStopped }) => isStopped)
      const begun =
        open.find(({ id }) => text.includes(id)) ?? [stopped, ofKind].find(({ length }) => length === 1)?.[0]
      if (begun) hand(begun, call)
    },
    sessionEnded(sessionId: string): void {
      for (const begun of all(sessionId)) if (begun.callSpanId === undefined) hand(begun, null)
    },
    deleteOld(now: number): void {
      deleteOldFiles(folder, { now, keptMs: KEPT_MS, filesMax: FILES_MAX })
    },
  }
}

/** Whether a call may begin an agent of this kind. A call that names no kind may begin an agent of any kind. */
function isOfKind({ input }: OpenCall, name: string): boolean {
  const { subagent_type: kind, agent_type: other } = (input ?? {}) as Readonly<Record<string, unknown>>
  return (textOf(kind) ?? textOf(other) ?? name) === name
}

/** The call's prompt, escaped as in a JSON Lines file. */
function promptOf({ input }: OpenCall): string {
  const { prompt, message } = (input ?? {}) as Readonly<Record<string, unknown>>
  return JSON.stringify(prompt ?? message) ?? '\n'
}
