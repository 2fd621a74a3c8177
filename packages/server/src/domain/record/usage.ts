/** Source: docs/decisions/0006-runs.md. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { TOKEN_NAMES } from '@tacho/contract/record/payload.ts'
import { callCounts } from '@tacho/contract/record/usage-shapes.ts'
import type { Latency } from '@tacho/contract/runs/usage.ts'
import type { RunOutcome, Usage } from '@tacho/contract/runs/run.ts'
import type { NewUsage, Payload } from '../../storage/record/events.ts'
import type { LatencyRow, UsageSums } from '../../storage/runs/usage.ts'
import { callTokens } from './call-tokens.ts'
import { isStorableText } from '../web/text.ts'
import { RUN_STATUSES } from '@tacho/contract/engine/words.ts'

export const NANOS = 1e9

const COST_RANGE = `a number between 0 and ${LIMITS.costPerCall}`
const TOKEN_RANGE = `a whole number between 0 and ${LIMITS.tokensPerCall}`

export function usageOf(eventType: string, payload: Payload): NewUsage | null {
  if (eventType !== 'LLM_CALL' || !isCountedCall(payload)) return null
  const counts = callCounts(payload['usage'])
  const { promptTokens = null, completionTokens = null, totalTokens = null } = counts ?? {}
  const cost = costNanos(payload['cost']) ?? gatewayNanos(payload['usage'])
  return {
    model: modelOf(payload['model']),
    promptTokens: promptTokens ?? 0,
    completionTokens: completionTokens ?? 0,
    totalTokens: totalTokens ?? (promptTokens ?? 0) + (completionTokens ?? 0),
    costNanos: cost ?? 0,
    uncosted: cost === null ? callTokens(counts) : null,
  }
}

/** An answer that was paid before: from a cache, or in a call inside this one. Its event shows what it would have used. */
export function isCountedCall({ notCounted }: Payload): boolean {
  return typeof notCounted !== 'string' || notCounted === ''
}

export function latencyOf(payload: Payload): number | null {
  return upTo(LIMITS.latencyMs, payload['latency'])
}

/** Not -0, which one engine returns as 0. */
function upTo(max: number, value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= max ? value + 0 : null
}

export function uncounted({ usage, cost }: Payload): { usage: string[]; cost: string[] } {
  return {
    usage: (usage ?? null) === null ? [] : uncountedTokens(usage),
    cost:
      (cost ?? null) === null ? uncountedCost(usage) : costNanos(cost) !== null ? [] : [`cost must be ${COST_RANGE}`],
  }
}

function uncountedCost(usage: unknown): string[] {
  if (!isObject(usage) || gatewayNanos(usage) !== null) return []
  return GATEWAY_COSTS.filter((name) => (usage[name] ?? null) !== null).map(
    (name) => `usage/${name} must be ${COST_RANGE}`,
  )
}

function uncountedTokens(usage: unknown): string[] {
  if (!isObject(usage)) return ['usage must be an object']
  const counts = callCounts(usage)
  if (counts !== null) return counts.invalid.map((name) => `usage/${name.replaceAll('.', '/')} must be ${TOKEN_RANGE}`)
  const isUnknown = Object.values(usage).every((value) => value === null)
  return isUnknown ? [] : [`usage must have one of ${Object.values(TOKEN_NAMES).flat().join(', ')}`]
}

export function outcomeOf(eventType: string, payload: Payload): RunOutcome | null {
  const status = payload['status']
  if (eventType !== 'SESSION_OUTCOME' || typeof status !== 'string' || status === 'RUNNING') return null
  return RUN_STATUSES.find((known): known is RunOutcome => known === status) ?? null
}

/** The stored cost is an integer of 1e-9 units, so sums are exact in any order. */
export function toUsage(sums: UsageSums): Usage {
  const { promptTokens, completionTokens, totalTokens } = sums
  return { promptTokens, completionTokens, totalTokens, cost: sums.costNanos / NANOS }
}

/** More digits would tell more than is known. */
const toMs = (latency: number) => Number(latency.toPrecision(3))

export function toLatency(row: LatencyRow | null): Latency {
  return row && { calls: row.calls, p50Ms: toMs(row.p50), p95Ms: toMs(row.p95) }
}

/** OpenRouter, LiteLLM and the Claude Agent SDK say in the usage what they charge. */
function gatewayNanos(usage: unknown): number | null {
  if (!isObject(usage)) return null
  const costs = GATEWAY_COSTS.map((name) => costNanos(usage[name]))
  return costs.find((cost) => cost !== null) ?? null
}

const GATEWAY_COSTS = ['cost', 'total_cost', 'costUSD', 'response_cost']

function costNanos(value: unknown): number | null {
  const cost = upTo(LIMITS.costPerCall, value)
  return cost === null ? null : Math.round(cost * NANOS)
}

function modelOf(value: unknown): string {
  return typeof value === 'string' && value.length <= LIMITS.modelChars && isStorableText(value) ? value : ''
}
