/**
 * Tools that ran without a decision, because the hooks were off, not trusted or not called. They cannot be undone. They
 * are recorded in their run and open an issue, and the agent's user gets a message.
 */
import type { Run, Tacho } from '@tacho/sdk'
import { digest } from '../../state.ts'
import { JUDGED_KEPT_MS, type JudgedCalls } from './judged-calls.ts'
import { AGENTS, type AgentName } from '../agents.ts'
import { textOf, type HookRecord } from '../record.ts'
import { readSessionDatabase, sessionDatabase } from './session-database.ts'
import { cwdOf, readSessionFile, sessionFiles, type KeptCall } from './session-files.ts'

/** At most this many calls of a session are recorded at once; the reported number counts all of them. */
const RECORDED_MAX = 100
/** File times can be inexact by some seconds. */
const OVERLAP_MS = 10_000

/** Where to search for calls. Hooks of a project read only sessions of their folder. */
export interface Compared {
  readonly files: readonly string[]
  readonly cwd: string | null
}

/** Files to compare at this step: those of the session; when a session starts, those of all others. */
export function filesToCompare(
  { agent, isProject }: { agent: AgentName; isProject: boolean },
  { event, fields }: HookRecord,
  judged: JudgedCalls,
): Compared {
  const transcriptPath = textOf(fields['transcript_path'])
  const cwd = isProject ? (textOf(fields['cwd']) ?? '') : null
  if (agent === 'opencode') return { files: [transcriptPath ?? sessionDatabase()], cwd }
  if (event !== 'SessionStart') {
    return {
      files: [transcriptPath, textOf(fields['agent_transcript_path'])].filter((file) => file !== undefined),
      cwd,
    }
  }
  const now = Date.now()
  const which = `${agent}\n${cwd ?? ''}`
  const since = Math.max(judged.since(now), judged.swept(which) - OVERLAP_MS)
  const files = sessionFiles(agent, transcriptPath, since).filter((file) => cwd === null || cwdOf(file) === cwd)
  judged.setSwept(which, now)
  return { files, cwd }
}

/** The calls in these files that no hook saw, by session. Each is returned once. */
export async function takeUnjudged(
  agent: AgentName,
  { files, cwd }: Compared,
  judged: JudgedCalls,
): Promise<Map<string, KeptCall[]>> {
  const now = Date.now()
  const since = Math.max(judged.since(now), now - JUDGED_KEPT_MS)
  const unjudgedCalls = new Map<string, KeptCall[]>()
  for (const file of files) {
    // Hooks of several projects read one database.
    const place = agent === 'opencode' ? `${file}\n${cwd ?? ''}` : file
    const from = judged.place(place)
    const { calls, next } =
      agent === 'opencode' ? await readSessionDatabase(file, from, cwd) : readSessionFile(agent, file, from)
    judged.setPlace(place, next)
    for (const [sessionId, ofSession] of Map.groupBy(calls, (call) => call.sessionId)) {
      const isJudged = judged.of(sessionId)
      const unseen = ofSession.filter(({ callId, at }) => at >= since && !isJudged(callId))
      if (unseen.length === 0) continue
      judged.add(
        sessionId,
        unseen.map(({ callId }) => callId),
      )
      unjudgedCalls.set(sessionId, [...(unjudgedCalls.get(sessionId) ?? []), ...unseen])
    }
  }
  return unjudgedCalls
}

/** Records the calls in the run of their session. Returns a sentence for the user. */
export function recordUnjudged(tacho: Tacho, agent: AgentName, sessionId: string, calls: readonly KeptCall[]): string {
  const run = tacho.startRun({ runId: sessionId, sessionId, agentId: agent, agentName: agent })
  for (const { callId, toolName, input, at } of calls.slice(0, RECORDED_MAX)) {
    const payload = { toolName, toolCallId: callId, input, unjudged: true }
    run.record({
      type: 'TOOL_CALL',
      label: toolName,
      payload,
      at,
      eventId: `${agent}-${digest(`${sessionId}\n${callId}`)}`,
    })
  }
  return reportUnjudged(
    tacho,
    run,
    agent,
    calls.map(({ toolName }) => toolName),
  )
}

export function reportUnjudged(tacho: Tacho, run: Run, agent: AgentName, names: readonly string[]): string {
  const tools = [...new Set(names)].sort()
  const count = names.length === 1 ? 'a tool' : `${names.length} tools`
  const message = `${AGENTS[agent].title} ran ${count} that no policy saw: ${tools.join(', ')}`
  const code = 'no_decision'
  const eventId = run.record({ type: 'ERROR', label: 'no decision', payload: { code, message, tools } })
  const payload = { ...(tools.length === 1 ? { toolName: tools[0] } : { tools }), reasonCode: code }
  run.within(() => tacho.reportIssue({ detectionType: 'TOOL_NOT_JUDGED', payload, eventId }))
  return `Tacho: ${message}.`
}
