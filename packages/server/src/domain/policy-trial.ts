import type { SimulationResult } from '@tacho/contract/operator/simulation.ts'
import { compileCondition, fieldsOf, type Condition } from '@tacho/policy/compile.ts'
import { actsOnError } from '@tacho/policy/decide.ts'
import { evaluate } from '@tacho/policy/evaluate.ts'
import type { SimulationRow, ToolCallRow } from '../storage/simulations.ts'
import { fieldCensus } from './field-census.ts'
import { factsOf, recordedCall, type RecordedCall } from './recorded-call.ts'
import { isoTime } from '../storage/iso-time.ts'
import { runUsages } from './run-usage.ts'

export type TrialPolicy = Pick<SimulationRow, 'severity' | 'action' | 'onError'>

export interface AskedApproval {
  approvalId: string
  hit: boolean
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
  const census = fieldCensus(fieldsOf(condition))
  const usages = runUsages()
  const { action } = policy
  const failsClosed = actsOnError(policy)
  const counts = { calls: 0, matched: 0, failures: 0, hits: 0 }
  const runs = new Set<string>()
  const hitRuns: TrialFindings['hitRuns'] = []
  const tools = new Map<string, { calls: number; hits: number }>()
  const reasons = new Map<string, number>()
  let moreTools = false

  function tried(row: ToolCallRow, call: RecordedCall): boolean {
    const result = evaluate(condition, factsOf(row, call, usages.before(row.run, row)))
    if (result.ok) {
      if (result.matched) counts.matched += 1
      return result.matched
    }
    counts.failures += 1
    if (reasons.has(result.message) || reasons.size < REASONS_LISTED) {
      reasons.set(result.message, (reasons.get(result.message) ?? 0) + 1)
    }
    return failsClosed
  }

  function countTool(toolName: string, hit: boolean): void {
    const isOneTooMany = !tools.has(toolName) && tools.size >= TOOLS_COUNTED
    moreTools ||= isOneTooMany
    if (isOneTooMany) return
    const { calls, hits } = tools.get(toolName) ?? { calls: 0, hits: 0 }
    tools.set(toolName, { calls: calls + 1, hits: hits + (hit ? 1 : 0) })
  }

  function countHit(row: ToolCallRow, toolName: string): void {
    counts.hits += 1
    if (runs.has(row.run)) return
    runs.add(row.run)
    if (hitRuns.length >= RUNS_LISTED) return
    hitRuns.push({ runId: row.runId, id: row.run, eventId: row.eventId, toolName, at: isoTime(row.time) })
  }

  return {
    /** Before the next calls; required only if `needsRunUsage`. */
    addSteps: usages.add,
    forgetRuns: usages.forget,
    /** Calls in time order. */
    look(rows: ToolCallRow[]): AskedApproval[] {
      const asked: AskedApproval[] = []
      for (const row of rows) {
        const call = recordedCall(row.payload)
        counts.calls += 1
        census.count(call.input)
        const hit = tried(row, call)
        countTool(call.toolName, hit)
        if (hit) countHit(row, call.toolName)
        if (call.approvalId !== null) asked.push({ approvalId: call.approvalId, hit })
      }
      return asked
    },
    findings(): TrialFindings {
      const listed = [...tools]
        .map(([toolName, { calls, hits }]) => ({ toolName, calls, hits }))
        .sort((a, b) => b.hits - a.hits || b.calls - a.calls || (a.toolName < b.toolName ? -1 : 1))
      return {
        ...counts,
        blocked: action === 'BLOCK' ? counts.hits : 0,
        asked: action === 'REQUIRE_APPROVAL' ? counts.hits : 0,
        warned: action === 'WARN' ? counts.hits : 0,
        runs: runs.size,
        hitRuns,
        tools: listed.slice(0, TOOLS_LISTED),
        moreTools: moreTools || listed.length > TOOLS_LISTED,
        failureReasons: [...reasons].map(([message, count]) => ({ message, count })),
        fields: census.fields(),
        warnings: census.warnings(),
      }
    },
  }
}
