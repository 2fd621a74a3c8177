/** Parts of a call's tokens, by the names of OpenAI, Anthropic, the AI SDK and the contract. Each part has its own price. */
import { LIMITS } from '@tacho/contract/limits.ts'
import { isObject } from '@tacho/contract/read-payload.ts'
import { LONG_CONTEXTS } from '@tacho/contract/words.ts'
import type { CallTokens } from '../storage/uncosted.ts'

type Fields = Record<string, unknown>

/** The first one present counts. A dot leads into an object. */
const CACHE_READ = [
  'cachedTokens',
  'cacheReadTokens',
  'cache_read_input_tokens',
  'cachedInputTokens',
  'prompt_tokens_details.cached_tokens',
  'input_tokens_details.cached_tokens',
  'inputTokenDetails.cacheReadTokens',
]
const CACHE_WRITE = ['cacheWriteTokens', 'cache_creation_input_tokens', 'inputTokenDetails.cacheWriteTokens']
const CACHE_WRITE_1H = ['cache_creation.ephemeral_1h_input_tokens']
const REASONING = [
  'reasoningTokens',
  'completion_tokens_details.reasoning_tokens',
  'output_tokens_details.reasoning_tokens',
  'outputTokenDetails.reasoningTokens',
]

type TokenTotals = Record<'promptTokens' | 'completionTokens' | 'totalTokens', number | null>

export function callTokens(usage: Fields, totals: TokenTotals): CallTokens | null {
  const { totalTokens } = totals
  const prompt = totals.promptTokens ?? Math.max(0, (totalTokens ?? 0) - (totals.completionTokens ?? 0))
  const completion =
    totals.completionTokens ?? Math.max(0, totals.promptTokens === null ? 0 : (totalTokens ?? 0) - prompt)
  const cacheRead = countOf(usage, CACHE_READ)
  const written = countOf(usage, CACHE_WRITE)
  const cacheWrite1h = Math.min(written, countOf(usage, CACHE_WRITE_1H))
  const cached = cacheRead + written
  const all = leavesOutCached(usage) || cached > prompt ? prompt + cached : prompt
  const reasoning = countOf(usage, REASONING)
  // Some providers leave reasoning out of the completion. More reasoning than completion shows it.
  const output = reasoning > completion ? completion : completion - reasoning
  if (all + output + reasoning === 0) return null
  return {
    context: contextOf(all),
    input: all - cached,
    cacheRead,
    cacheWrite: written - cacheWrite1h,
    cacheWrite1h,
    output,
    reasoning,
  }
}

/** Anthropic's `input_tokens` are those that come neither from the cache nor go into it. */
function leavesOutCached(usage: Fields): boolean {
  const has = (name: string) => Object.hasOwn(usage, name) && usage[name] !== null
  return (
    has('input_tokens') &&
    !has('promptTokens') &&
    !has('prompt_tokens') &&
    (has('cache_read_input_tokens') || has('cache_creation_input_tokens'))
  )
}

function contextOf(inputTokens: number): number {
  return LONG_CONTEXTS.findLast((start) => inputTokens > start) ?? 0
}

function countOf(usage: Fields, names: readonly string[]): number {
  for (const name of names) {
    const [first = '', second] = name.split('.')
    const outer = Object.hasOwn(usage, first) ? usage[first] : undefined
    const value = second === undefined ? outer : isObject(outer) ? outer[second] : undefined
    if (isCount(value)) return value
  }
  return 0
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= LIMITS.tokensPerCall
}
