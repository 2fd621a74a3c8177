import type { CallState, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import { compileCondition, fieldsOf, type Condition, type Fields } from '@tacho/policy/compile.ts'
import { actsOnError } from '@tacho/policy/decide.ts'
import { toolNameOf } from '@tacho/policy/language/tool-name.ts'
import { evaluate } from '@tacho/policy/evaluate.ts'
import { number } from '@tacho/contract/engine/format.ts'
import type { CallKind, SimulationRow, ToolCallRow } from '../../storage/policies/policies.ts'
import { fieldCensus, spelled, inputValuesAt, type Path } from './field-census.ts'
import { factsOf, recordedCall, type RecordedCall, runUsages } from './recorded-call.ts'
import { isoTime } from '../../storage/engine/times.ts'

export type TrialPolicy = Pick<SimulationRow, 'severity' | 'action' | 'onError'>

export interface AskedApproval {
  approvalId: string
  hit: boolean
}

interface Tried extends Hit {
  outcome: 'matched' | 'not matched' | 'failed' | 'unjudged'
  hit: boolean
  reason?: string
  keys: readonly string[]
}

export type TrialFindings = Omit<SimulationResult, 'approvals' | 'to' | 'from'>

export type Trial = ReturnType<typeof createTrial>

const RUNS_LISTED = 100
const TOOLS_LISTED = 50
const TOOLS_COUNTED = 1_000
const REASONS_LISTED = 20

export function conditionOf(source: string): Condition {
  const compiled = compileCondition(source)
  if (!compiled.ok) throw new Error(compiled.faults[0]?.message ?? 'the condition does not compile')
  return compiled.condition
}

export function needsRunUsage(condition: Condition): boolean {
  const { variables } = fieldsOf(condition)
  return (['run.cost', 'run.totalTokens', 'run.toolCalls'] as const).some((name) => variables.includes(name))
}

export function createTrial(condition: Condition, policy: TrialPolicy) {
  const fields = fieldsOf(condition)
  const census = fieldCensus(fields)
  const usages = runUsages()
  const { action } = policy
  const failsClosed = actsOnError(policy)
  const counts = { calls: 0, matched: 0, failures: 0, hits: 0 }
  const states = { ran: none(), held: none(), blocked: none(), neverRan: none() }
  /** By the key of their call, until it is known to have run. */
  const held = new Map<string, Tried>()
  const runs = new Set<string>()
  const hitRuns: TrialFindings['hitRuns'] = []
  const tools = new Map<string, { calls: number; hits: number }>()
  const reasons = new Map<string, number>()
  const largest = largestHits(fields)
  let moreTools = false

  function tried(row: ToolCallRow, call: RecordedCall, state: CallState, keys: readonly string[]): Tried {
    const { run, runId, eventId, time } = row
    const place = { run, runId, eventId, time, toolName: call.toolName, state, keys }
    // Nobody judged the arguments of a call that never ran, and there may be none.
    if (state === 'neverRan' && call.input === undefined)
      return { ...place, outcome: 'unjudged', hit: false, values: [] }
    const result = evaluate(condition, factsOf(row, call, usages.before(run, row)))
    if (result.ok) {
      const values = result.matched ? largest.valuesOf(call.input) : []
      return { ...place, outcome: result.matched ? 'matched' : 'not matched', hit: result.matched, values }
    }
    return { ...place, outcome: 'failed', hit: failsClosed, values: [], reason: result.message }
  }

  function count({ outcome, hit, reason, ...call }: Tried): void {
    counts.calls += 1
    states[call.state].calls += 1
    if (outcome === 'matched') counts.matched += 1
    if (outcome === 'failed') counts.failures += 1
    if (reason !== undefined && (reasons.has(reason) || reasons.size < REASONS_LISTED)) {
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    }
    countTool(call.toolName, hit)
    if (!hit) return
    counts.hits += 1
    states[call.state].hits += 1
    largest.add(call)
    if (runs.has(call.run)) return
    runs.add(call.run)
    if (hitRuns.length >= RUNS_LISTED) return
    const { runId, run: id, eventId, toolName, time } = call
    hitRuns.push({ runId, id, eventId, toolName, at: isoTime(time) })
  }

  function countTool(toolName: string, hit: boolean): void {
    const isOneTooMany = !tools.has(toolName) && tools.size >= TOOLS_COUNTED
    moreTools ||= isOneTooMany
    if (isOneTooMany) return
    const { calls, hits } = tools.get(toolName) ?? { calls: 0, hits: 0 }
    tools.set(toolName, { calls: calls + 1, hits: hits + (hit ? 1 : 0) })
  }

  return {
    /** Before the next calls; required only if `needsRunUsage`. */
    addSteps: usages.add,
    forgetRuns: usages.forget,
    /** Calls in time order; all that were held before those that ran. */
    look(kind: CallKind, rows: ToolCallRow[]): AskedApproval[] {
      const asked: AskedApproval[] = []
      for (const row of rows) {
        const call = recordedCall(row.payload)
        const { approvalId } = call
        const keys = keysOf(row, call)
        if (kind === 'held') {
          // A call that asked several times, for example after a restart, is one.
          if (keys.some((key) => held.has(key))) continue
          const result = tried(row, call, call.action === 'BLOCK' ? 'blocked' : 'held', keys)
          for (const key of keys) held.set(key, result)
          census.count(call.input, namesOf(call))
          if (approvalId !== null) asked.push({ approvalId, hit: result.hit })
          continue
        }
        const before = keys.map((key) => held.get(key)).find((one) => one !== undefined)
        for (const key of before?.keys ?? []) held.delete(key)
        const result = tried(row, call, call.outcome === 'never_ran' ? 'neverRan' : 'ran', keys)
        count(result)
        if (before) continue
        if (result.outcome !== 'unjudged') census.count(call.input, namesOf(call))
        if (approvalId !== null) asked.push({ approvalId, hit: result.hit })
      }
      return asked
    },
    findings(): TrialFindings {
      for (const call of new Set(held.values())) count(call)
      held.clear()
      const listed = [...tools]
        .map(([toolName, { calls, hits }]) => ({ toolName, calls, hits }))
        .sort((a, b) => b.hits - a.hits || b.calls - a.calls || (a.toolName < b.toolName ? -1 : 1))
      return {
        ...counts,
        states,
        largest: largest.listed(),
        blocked: action === 'BLOCK' ? counts.hits : 0,
        asked: action === 'REQUIRE_APPROVAL' ? counts.hits : 0,
        warned: action === 'WARN' ? counts.hits : 0,
        runs: runs.size,
        hitRuns: hitRuns.sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at))),
        tools: listed.slice(0, TOOLS_LISTED),
        moreTools: moreTools || listed.length > TOOLS_LISTED,
        failureReasons: [...reasons].map(([message, number]) => ({ message, count: number })),
        fields: census.fields(),
        warnings: census.warnings(),
      }
    },
  }
}

function namesOf({ toolName, server }: RecordedCall): string[] {
  return [toolName, toolNameOf(toolName, server).own]
}

const none = () => ({ calls: 0, hits: 0 })

/** What names a call in its run, in events of several kinds. The event itself, if nothing else does. A span can have several calls. */
function keysOf(
  { run, spanId, eventId }: ToolCallRow,
  { approvalId, toolCallId, toolName, inputHash }: RecordedCall,
): string[] {
  const keys = [
    ...(approvalId === null ? [] : [`approval ${approvalId}`]),
    ...(toolCallId === null ? [] : [`call ${run} ${toolCallId}`]),
    ...(spanId === null ? [] : [`span ${run} ${spanId} ${toolName} ${inputHash}`]),
  ]
  return keys.length > 0 ? keys : [`event ${run} ${eventId}`]
}

/** The hits of a simulation with the largest numbers, as sentences: they say whether a limit is where it was meant to be. */

type LargestHit = NonNullable<SimulationResult['largest']>[number]

interface Hit {
  run: string
  runId: string
  eventId: string
  time: number
  toolName: string
  state: CallState
  values: readonly { path: Path; value: number }[]
}

const LISTED = 5
const FIELDS_READ = 10
const NAME_CHARS = 60

const BECAME: Record<CallState, string> = {
  ran: 'ran',
  held: 'asked a person and did not run',
  blocked: 'was blocked',
  neverRan: 'never ran',
}

function largestHits({ inputTypes }: Fields) {
  const paths = inputTypes.filter(({ type }) => type === 'double').map(({ path }) => path)
  const hits: LargestHit[] = []
  return {
    valuesOf: (input: unknown): Hit['values'] =>
      paths.slice(0, FIELDS_READ).flatMap((path) => {
        const numbers = inputValuesAt(input, path).filter((value) => typeof value === 'number')
        return numbers.length > 0 ? [{ path, value: Math.max(...numbers) }] : []
      }),
    add({ run: id, runId, eventId, time, toolName, state, values }: Hit): void {
      for (const { path, value } of values) {
        if (hits.length === LISTED && value <= (hits.at(-1)?.value ?? 0)) continue
        const field = spelled(path)
        const name = toolName.length > NAME_CHARS ? `${toolName.slice(0, NAME_CHARS)}…` : toolName
        const message = `${name} with ${field.replace('tool.input.', '')} ${number(value)} ${BECAME[state]}`
        hits.push({ field, value, toolName, state, runId, id, eventId, at: isoTime(time), message })
        hits.sort((a, b) => b.value - a.value || (a.at < b.at ? -1 : 1))
        hits.splice(LISTED)
      }
    },
    listed: () => hits,
  }
}
