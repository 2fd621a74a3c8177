/**
 * Computes what an event adds to its run's usage and how it ends the run. Source: decision "Runs" in docs/decisions.
 */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { RunOutcome, Usage } from '@tacho/contract/run.ts'
import type { NewUsage } from '../storage/events.ts'
import { isStorableText } from './text.ts'
import { RUN_STATUSES } from '@tacho/contract/words.ts'

const NANOS = 1e9
const MODEL_CHARS = 255

type Payload = Record<string, unknown>

/** Usage of an LLM_CALL; null for other events. Missing or out-of-range values count as zero. */
export function usageOf(eventType: string, payload: Payload): NewUsage | null {
  if (eventType !== 'LLM_CALL') return null
  const usage: Payload = isObject(payload['usage']) ? payload['usage'] : {}
  const promptTokens = tokens(usage['promptTokens'])
  const completionTokens = tokens(usage['completionTokens'])
  return {
    model: modelOf(payload['model']),
    promptTokens: promptTokens ?? 0,
    completionTokens: completionTokens ?? 0,
    totalTokens: tokens(usage['totalTokens']) ?? (promptTokens ?? 0) + (completionTokens ?? 0),
    costNanos: costNanos(payload['cost']),
  }
}

/** What an LLM_CALL or a TOOL_CALL took; null if it does not say so, or nothing plausible. */
export function latencyOf(eventType: string, payload: Payload): number | null {
  const latency = payload['latency']
  if (eventType !== 'LLM_CALL' && eventType !== 'TOOL_CALL') return null
  return typeof latency === 'number' && latency >= 0 && latency <= LIMITS.latencyMs ? latency + 0 : null
}

/** The status that a SESSION_OUTCOME closes its run with; null for other events and statuses. */
export function outcomeOf(eventType: string, payload: Payload): RunOutcome | null {
  const status = payload['status']
  if (eventType !== 'SESSION_OUTCOME' || typeof status !== 'string' || status === 'RUNNING') return null
  return RUN_STATUSES.find((known): known is RunOutcome => known === status) ?? null
}

/** Usage as in the interface. The stored cost is an integer of 1e-9 units, so sums are exact in any order. */
export function toUsage(sums: Omit<NewUsage, 'model'>): Usage {
  const { promptTokens, completionTokens, totalTokens } = sums
  return { promptTokens, completionTokens, totalTokens, cost: sums.costNanos / NANOS }
}

function tokens(value: unknown): number | null {
  if (typeof value !== 'number' || !Number.isInteger(value)) return null
  // -0 is an allowed integer but must not be stored as -0.
  return value >= 0 && value <= LIMITS.tokensPerCall ? value + 0 : null
}

function costNanos(value: unknown): number {
  return typeof value === 'number' && value >= 0 && value <= LIMITS.costPerCall ? Math.round(value * NANOS) + 0 : 0
}

function modelOf(value: unknown): string {
  return typeof value === 'string' && value.length <= MODEL_CHARS && isStorableText(value) ? value : ''
}

function isObject(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
