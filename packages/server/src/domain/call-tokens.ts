/** Parts of a call's tokens. Each part has its own price. */
import type { CallCounts } from '@tacho/contract/usage-shapes.ts'
import { LONG_CONTEXTS } from '@tacho/contract/words.ts'
import { TOKEN_PARTS, UNKNOWN_USAGE, type CallTokens } from '../storage/uncosted.ts'

/** Null: the call has no tokens. */
export function callTokens(counts: CallCounts | null): CallTokens | null {
  if (counts === null) return UNKNOWN
  const { promptTokens, completionTokens, totalTokens } = counts
  const prompt = promptTokens ?? Math.max(0, (totalTokens ?? 0) - (completionTokens ?? 0))
  const completion = completionTokens ?? Math.max(0, promptTokens === null ? 0 : (totalTokens ?? 0) - prompt)
  const { cachedTokens, cacheWriteTokens, cacheWrite1hTokens, reasoningTokens } = counts
  const cached = cachedTokens + cacheWriteTokens
  // Beside a total alone, the parts may say more.
  const all = Math.max(prompt, cached)
  const output = Math.max(completion, reasoningTokens)
  if (all + output === 0) return counts.invalid.length > 0 ? UNKNOWN : null
  return {
    context: contextOf(all),
    input: all - cached,
    cacheRead: cachedTokens,
    cacheWrite: cacheWriteTokens - cacheWrite1hTokens,
    cacheWrite1h: cacheWrite1hTokens,
    output: output - reasoningTokens,
    reasoning: reasoningTokens,
  }
}

const UNKNOWN = {
  context: UNKNOWN_USAGE,
  ...(Object.fromEntries(TOKEN_PARTS.map((part) => [part, 0])) as Record<(typeof TOKEN_PARTS)[number], 0>),
} satisfies CallTokens

function contextOf(inputTokens: number): number {
  return LONG_CONTEXTS.findLast((start) => inputTokens > start) ?? 0
}
