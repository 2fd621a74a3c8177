import type { CallState, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import { compileCondition, type Condition } from '@tacho/policy/compile.ts'
import { type Fields, fieldsOf } from '@tacho/policy/language/fields.ts'
import { actsOnError } from '@tacho/policy/decide.ts'
import { toolNameOf } from '@tacho/policy/language/tool-name.ts'
import { evaluate, type Evaluation } from '@tacho/policy/evaluate.ts'
import type { Facts } from '@tacho/policy/language/variables.ts'
import { number } from '@tacho/contract/engine/format.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { CallKind, PastRow, SimulationRow, ToolCallRow } from '../../storage/policies/policies.ts'
import { unknownLabels } from './policy.ts'
import { fieldCensus, spelled, inputValuesAt, type Path } from './field-census.ts'
import { labelCoverage, flowTrial, type FlowTrial, isInputWhole, RecordedPast } from './recorded-past.ts'
import { factsOf, recordedCall, type RecordedCall, runUsages } from './recorded-call.ts'
import { isoTime } from '../../storage/engine/times.ts'

export type TrialPolicy = Pick<SimulationRow, 'severity' | 'action' | 'onError' | 'toolLabels' | 'flow'>

export interface AskedApproval {
  approvalId: string
  hit: boolean
  toolName: string
}

type Judged = Pick<Tried, 'outcome' | 'hit' | 'values' | 'reason'>

interface Tried extends Hit {
  outcome: 'matched' | 'not matched' | 'failed' | 'unjudged' | 'unknown' | 'not asked'
  hit: boolean
  reason?: string | undefined
  keys: readonly string[]
}

export type TrialFindings = Omit<SimulationResult, 'approvals' | 'to' | 'from' | 'askedPerDay' | 'askedSince'>

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

/** Whether a trial must read whole runs in order. */
export function needsPast(condition: Condition, { flow }: Pick<TrialPolicy, 'flow'>): boolean {
  return condition.readsHistory || flow !== null
}

export function createTrial(condition: Condition, policy: TrialPolicy) {
  const fields = fieldsOf(condition)
  const flow = policy.flow === null ? null : flowTrial(policy.flow, policy.toolLabels ?? [])
  const rules: readonly ToolLabels[] = flow?.rules ?? policy.toolLabels ?? []
  const coverage = needsPast(condition, policy) ? labelCoverage(policy.toolLabels ?? []) : null
  const census = fieldCensus(fields)
  const unknownLabel = policy.toolLabels ? unknownLabels(condition, policy.toolLabels) : null
  const labelWarnings: TrialFindings['warnings'] =
    unknownLabel === null ? [] : [{ code: 'unknown_label', field: null, message: unknownLabel }]
  const usages = runUsages()
  const { action } = policy
  const failsClosed = actsOnError(policy)
  const counts = { calls: 0, matched: 0, failures: 0, hits: 0 }
  let [unknown, asked] = [0, 0]
  /** The run whose events are being read. Null: the condition needs no past. */
  let past: { run: string; recorded: RecordedPast; started: Map<string, Tried> } | null = null
  const states = { ran: none(), held: none(), blocked: none(), neverRan: none() }
  /** Held calls by their key, until they are known to have run. */
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
    // Nobody judged the arguments of a call that never ran, and it may have none.
    if (state === 'neverRan' && call.input === undefined)
      return { ...place, outcome: 'unjudged', hit: false, values: [] }
    const facts = factsOf(row, call, usages.before(run, row), rules)
    if (past !== null) return { ...place, ...judgedWithPast(facts, call, past.recorded, flow) }
    return { ...place, ...judged(evaluate(condition, facts), call) }
  }

  function judged(result: Evaluation, call: RecordedCall): Judged {
    if (!result.ok) return { outcome: 'failed', hit: failsClosed, values: [], reason: result.message }
    const values = result.matched ? largest.valuesOf(call.input) : []
    return { outcome: result.matched ? 'matched' : 'not matched', hit: result.matched, values }
  }

  /** Whether an input that was recorded only in part has all parts that the condition reads. */
  function arePathsWhole(input: unknown): boolean {
    const values = fields.inputPaths.map((path) => inputValuesAt(input, path))
    return values.length > 0 && values.every((some) => some.length > 0 && some.every(isInputWhole))
  }

  /** The result is unknown if the condition read something that is not recorded. */
  function judgedWithPast(facts: Facts, call: RecordedCall, recorded: RecordedPast, asks: FlowTrial | null): Judged {
    const nothing = { hit: false, values: [] }
    if (asks !== null && !asks.isAsked(call, facts.now)) return { outcome: 'not asked', ...nothing }
    const watched = recorded.watched()
    const { input, ...tool } = facts.tool
    let isInputRead = false
    const watchedTool = {
      ...tool,
      get input() {
        isInputRead = true
        return input
      },
    }
    const run = { ...facts.run, history: watched.history }
    const result = evaluate(condition, { ...facts, tool: watchedTool, run })
    const isWhole = isInputWhole(call.input)
    if (watched.isUnknown || (isInputRead && !isWhole && !arePathsWhole(call.input)))
      return { outcome: 'unknown', ...nothing }
    if (asks === null) return judged(result, call)
    if (!result.ok) return { outcome: 'unknown', ...nothing, reason: result.message }
    if (!result.matched) return { outcome: 'not asked', ...nothing }
    const reached = asks.reached(call.input, isWhole, watched)
    return reached === null ? { outcome: 'unknown', ...nothing } : judged({ ok: true, matched: reached }, call)
  }

  function count({ outcome, hit, reason, ...call }: Tried): void {
    counts.calls += 1
    states[call.state].calls += 1
    if (outcome === 'matched') counts.matched += 1
    if (outcome === 'failed') counts.failures += 1
    if (outcome === 'unknown') unknown += 1
    if (outcome !== 'not asked') asked += 1
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

  /** Pass calls in time order, and all held calls before those that ran. */
  function lookAt(kind: CallKind, rows: readonly ToolCallRow[]): AskedApproval[] {
    const approvals: AskedApproval[] = []
    for (const row of rows) {
      const call = recordedCall(row.payload)
      const { approvalId } = call
      const keys = keysOf(row, call)
      const addApproval = ({ outcome, hit, toolName }: Tried): void => {
        if (approvalId === null || outcome === 'unknown' || !(hit || mayMatch(call))) return
        approvals.push({ approvalId, hit, toolName })
      }
      if (kind === 'held') {
        // A call that asked several times, for example after a restart, counts once.
        if (keys.some((key) => held.has(key))) continue
        const result = tried(row, call, call.action === 'BLOCK' ? 'blocked' : 'held', keys)
        for (const key of keys) held.set(key, result)
        countFirst(call)
        addApproval(result)
        continue
      }
      const before = keys.map((key) => held.get(key)).find((one) => one !== undefined)
      for (const key of before?.keys ?? []) held.delete(key)
      const state: CallState = call.outcome === 'never_ran' ? 'neverRan' : 'ran'
      // With a past, use the result from when the call was judged. When it ended, the run had read more.
      const first = past && (before ?? keys.map((key) => past?.started.get(key)).find((one) => one !== undefined))
      const { eventId, time } = row
      const result: Tried = first ? { ...first, state, eventId, time } : tried(row, call, state, keys)
      count(result)
      if (before) continue
      if (result.outcome !== 'unjudged') countFirst(call)
      addApproval(result)
    }
    return approvals
  }

  /** A condition that names tools does not apply to other tools. */
  function mayMatch(call: RecordedCall): boolean {
    return fields.toolNames.length === 0 || namesOf(call).some((name) => fields.toolNames.includes(name))
  }

  function countFirst(call: RecordedCall): void {
    census.count(call.input, namesOf(call))
    coverage?.count({ name: call.toolName, server: call.server })
  }

  return {
    /** Call this before the calls that follow; required only if `needsRunUsage`. */
    addSteps: usages.add,
    forgetRuns: usages.forget,
    look: lookAt,
    /** Takes events of runs, one run after the other, each in order. Calls before `from` count only as past. */
    walk(rows: readonly PastRow[], from: number): AskedApproval[] {
      const approvals: AskedApproval[] = []
      for (const row of rows) {
        const { run, eventType, isHeld } = row
        if (past?.run !== run) {
          usages.forget(past === null ? [] : [past.run])
          past = { run, recorded: new RecordedPast(rules, condition.source), started: new Map() }
        }
        const isStep = eventType === 'LLM_CALL' || eventType === 'TOOL_CALL'
        if (row.time >= from) {
          if (eventType === 'TOOL_START') {
            const call = recordedCall(row.payload)
            const keys = keysOf(row, call)
            if (!keys.some((key) => held.has(key))) {
              const result = tried(row, call, 'ran', keys)
              for (const key of keys) past.started.set(key, result)
            }
          } else if (eventType === 'TOOL_CALL') approvals.push(...lookAt('ran', [row]))
          else if (isHeld) approvals.push(...lookAt('held', [row]))
        }
        if (isStep) usages.add(run, [{ ...row, payload: eventType === 'LLM_CALL' ? row.payload : null }])
        past.recorded.see(row, JSON.parse(row.payload) as Record<string, unknown>)
      }
      return approvals
    },
    /**
     * Tools to which the policy applies: those that the condition names, or else those with a call on which the policy
     * acts.
     */
    decidedTools: (names: readonly string[]) =>
      fields.toolNames.length > 0 ? names : names.filter((name) => (tools.get(name)?.hits ?? 0) > 0),
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
        warnings: [...labelWarnings, ...census.warnings()],
        ...(coverage && { past: { unknown, ...coverage.found() } }),
        ...(flow && { flow: { calls: asked, reached: counts.hits, unknown } }),
      }
    },
  }
}

function namesOf({ toolName, server }: RecordedCall): string[] {
  return [toolName, toolNameOf(toolName, server).own]
}

const none = () => ({ calls: 0, hits: 0 })

/**
 * The keys that connect a call's events in its run; the event's id, if it has no other key. A span can have several
 * calls.
 */
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

/** The hits of a simulation with the largest numbers, as sentences. They show whether a limit is where it should be. */

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
