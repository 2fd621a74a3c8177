/** Source: docs/decisions/0006-runs.md. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { TOKEN_NAMES } from '@tacho/contract/record/payload.ts'
import { callCounts, type CallCounts } from '@tacho/contract/record/usage-shapes.ts'
import type { Latency } from '@tacho/contract/runs/usage.ts'
import type { RunOutcome, Usage } from '@tacho/contract/runs/run.ts'
import { RUN_STATUSES, LONG_CONTEXTS } from '@tacho/contract/engine/words.ts'
import type { NewUsage, Payload } from '../../storage/record/events.ts'
import {
  type LatencyRow,
  type UsageSums,
  partsOf,
  UNKNOWN_USAGE,
  withMedia,
  withUnknown,
  type CallTokens,
} from '../../storage/runs/usage.ts'
import { isStorableText } from '../web/text.ts'

export const NANOS = 1e9

const COST_RANGE = `a number between 0 and ${LIMITS.costPerCall}`
const TOKEN_RANGE = `a whole number between 0 and ${LIMITS.tokensPerCall}`

export function usageOf(eventType: string, payload: Payload): NewUsage | null {
  if (eventType !== 'LLM_CALL' || !isCountedCall(payload)) return null
  const counts = countsOf(payload['usage'])
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

let latest: { usage: unknown; counts: CallCounts | null } | undefined

/** Cached, because the facts of an event and its warnings read the same usage, one after the other. */
function countsOf(usage: unknown): CallCounts | null {
  if (latest?.usage !== usage) latest = { usage, counts: callCounts(usage) }
  return latest?.counts ?? null
}

/**
 * False for an answer that was already paid: from a cache, or in a call inside this one. Its event shows the usage that
 * it would have had.
 */
function isCountedCall({ notCounted }: Payload): boolean {
  return typeof notCounted !== 'string' || notCounted === ''
}

export function latencyOf(eventType: string, payload: Payload): number | null {
  return eventType === 'LLM_CALL' && !isCountedCall(payload) ? null : upTo(LIMITS.latencyMs, payload['latency'])
}

/** `+ 0` turns -0 into 0: only one of the databases would return it as 0. */
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
  const counts = countsOf(usage)
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

/** Latencies are exact to 0.9 %, so further digits mean nothing. */
const toMs = (latency: number) => Number(latency.toPrecision(4))

export function toLatency(row: LatencyRow | null): Latency {
  return row && { calls: row.calls, p50Ms: toMs(row.p50), p95Ms: toMs(row.p95), isApproximate: row.former > 0 }
}

/** OpenRouter, LiteLLM and the Claude Agent SDK report their charge in the usage. */
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

/** The parts of a call's tokens, which have different prices. Null: the call has no tokens. */
function callTokens(counts: CallCounts | null): CallTokens | null {
  if (counts === null) return UNKNOWN
  const { promptTokens, completionTokens, totalTokens } = counts
  const prompt = promptTokens ?? Math.max(0, (totalTokens ?? 0) - (completionTokens ?? 0))
  const completion = completionTokens ?? Math.max(0, promptTokens === null ? 0 : (totalTokens ?? 0) - prompt)
  const { cacheWriteTokens, cacheWrite1hTokens, reasoningTokens, cachedAudioTokens, cachedImageTokens } = counts
  // If the number of cached tokens is unreadable, all tokens of the prompt may be cached, and cached ones are the
  // cheapest.
  const isWithin = !counts.unknown.includes('promptTokens')
  const isReadUnknown = isWithin && counts.invalid.some((path) => /cache(?!.*(?:creat|writ))/i.test(path))
  const cachedTokens = isReadUnknown ? Math.max(0, prompt - cacheWriteTokens) : counts.cachedTokens
  const cached = cachedTokens + cacheWriteTokens
  // If only a total is known, the parts may exceed the derived counts.
  const all = Math.max(prompt, cached)
  const output = Math.max(completion, reasoningTokens)
  const isUnknown = counts.unknown.length > 0 || counts.invalid.some((path) => /cache|audio|image/i.test(path))
  if (all + output === 0) return isUnknown || counts.invalid.length > 0 ? UNKNOWN : null
  // Some shapes do not say which of the cached tokens are audio. Those count as text.
  const [audioInput, imageInput, input] = split(all - cached, [
    counts.audioInputTokens - cachedAudioTokens,
    counts.imageInputTokens - cachedImageTokens,
  ])
  const [cachedAudio, cachedImage, cacheRead] = split(cachedTokens, [cachedAudioTokens, cachedImageTokens])
  const answered = output - reasoningTokens
  const [audioOutput, imageOutput, text] = split(answered, [counts.audioOutputTokens, counts.imageOutputTokens])
  const media = { audioInput, cachedAudio, imageInput, cachedImage, audioOutput, imageOutput }
  const hasMedia = Object.values(media).some((tokens) => tokens > 0)
  const context = hasMedia ? withMedia(contextOf(all)) : contextOf(all)
  return {
    context: isUnknown ? withUnknown(context) : context,
    input,
    cacheRead,
    cacheWrite: cacheWriteTokens - cacheWrite1hTokens,
    cacheWrite1h: cacheWrite1hTokens,
    output: text,
    reasoning: reasoningTokens,
    ...media,
  }
}

/** Divides a whole into two parts and the rest. */
function split(whole: number, [one, other]: [number, number]): [number, number, number] {
  const first = Math.min(one, whole)
  const second = Math.min(other, whole - first)
  return [first, second, whole - first - second]
}

const UNKNOWN: CallTokens = { context: UNKNOWN_USAGE, ...partsOf(() => 0) }

function contextOf(inputTokens: number): number {
  return LONG_CONTEXTS.findLast((start) => inputTokens > start) ?? 0
}
