/**
 * Allows a call that matches no policy without loading the SDK: nothing is recorded and nobody is asked, as for most
 * calls. Anything unusual is left to run-hook.ts, which uses the SDK.
 */
import { createHmac } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { evaluateWith } from '@tacho/policy/evaluate.ts'
import { factReader } from '@tacho/policy/input/facts.ts'
import { hashOf } from '../../refusals.ts'
import { configurationFileIn, stateDirectory, type Account } from '../../state.ts'
import type { AgentName } from '../agents.ts'
import { openKeptConditions } from '../kept-conditions.ts'
import type { HookRecord } from '../record.ts'
import { openSessionCalls } from './session-calls.ts'
import { openSessionRefusals } from './session-refusals.ts'
import { noteJudged, placeOf, toolCallIn } from '../tool-call.ts'

/** Policies that the service confirmed this recently decide without asking it, as in agents with an SDK. */
export const FRESH_MS = 30_000
/** A larger file contains large prompts. Reading it would take longer than the time saved by not loading the SDK. */
const FILE_BYTES_MAX = 4 * 1_048_576

/**
 * True if fresh policies are known, an earlier hook checked all of their conditions, and none of them matches or fails. The
 * call then counts as judged.
 */
export function allowPlainCall(account: Account, agent: AgentName, record: HookRecord): boolean {
  const { sessionId } = record
  const directory = stateDirectory(account)
  const fresh = freshConfiguration(directory, account)
  if (!fresh || openSessionRefusals(directory).read(sessionId)) return false
  const place = placeOf(record)
  const { toolName, input, riskSignals } = toolCallIn(agent, record, place)
  const inputHash = isObject(input) ? hashOf(toolName, input) : null
  if (!isObject(input) || inputHash === null) return false
  // Reads facts as the SDK passes them to the policies.
  const fact = factReader({
    tool: { name: toolName, input },
    agent: { id: agent, name: agent },
    run: { id: sessionId, toolCalls: openSessionCalls(directory).count(sessionId) },
    session: { id: sessionId },
    risk: { signals: riskSignals },
    now: Date.now(),
  })
  const keptConditions = openKeptConditions(directory, account)
  for (const source of fresh.conditions) {
    const condition = keptConditions.get(source)
    if (!condition) return false
    // A condition on the call's labels needs the parser of conditions.
    if (fresh.hasLabels && condition.names.has('tool.labels')) return false
    const outcome = evaluateWith(condition, fact)
    if (!outcome.ok || outcome.matched) return false
  }
  noteJudged(directory, record, { agent, place, outcome: 'allowed', facts: { inputHash, approvalId: null } })
  return true
}

/**
 * The conditions of the SDK's cached policies, and whether tools have labels, if the service confirmed them a moment
 * ago.
 */
function freshConfiguration(directory: string, { url, apiKey }: Account) {
  try {
    const file = configurationFileIn(directory)
    const stats = statSync(file)
    if (!stats.isFile() || stats.size > FILE_BYTES_MAX) return null
    const { etag, confirmedAt, body, signature } = JSON.parse(readFileSync(file, 'utf8')) as {
      readonly etag: unknown
      readonly confirmedAt: number
      readonly body: {
        readonly policies: readonly { readonly condition: string }[]
        readonly toolLabels?: readonly unknown[]
      }
      readonly signature: unknown
    }
    const ageMs = Date.now() - Math.max(confirmedAt, Math.floor(stats.mtimeMs))
    if (!(ageMs >= 0 && ageMs < FRESH_MS)) return null
    // The SDK signs this text, with the address normalised like this.
    const text = `${url.replace(/\/+$/, '')}\n${JSON.stringify([etag, body])}`
    if (signature !== createHmac('sha256', apiKey).update(text).digest('hex')) return null
    const conditions = body.policies.map(({ condition }) => condition)
    return { conditions, hasLabels: (body.toolLabels ?? []).length > 0 }
  } catch {
    return null
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
