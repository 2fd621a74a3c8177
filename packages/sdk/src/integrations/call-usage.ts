import { callCounts, type CallCounts } from '../recording/usage-shapes.ts'

/** Null: unknown. `cachedTokens` and other parts are part of `promptTokens` or `completionTokens`. Parts of zero tokens are left out. */
export type Usage = { [Name in Exclude<keyof CallCounts, 'invalid' | 'unknown'>]?: number | null }

/** Undefined: the answer says nothing of its tokens. */
export function callUsage(rawUsage: unknown): Usage | undefined {
  const counts = callCounts(rawUsage)
  if (counts === null) return undefined
  const { invalid: _, unknown, ...known } = counts
  const isSaid = ([name, count]: [string, number | null]) =>
    count !== null && (count > 0 || /^(?:prompt|completion|total)Tokens$/.test(name))
  const usage = Object.fromEntries(Object.entries(known).filter(isSaid)) as Usage
  // An absent answer would mean that there is none, as in embeddings.
  if (unknown.includes('completionTokens')) usage.completionTokens ??= null
  return usage
}

/** Frameworks that start at zero say nothing with it. */
export function nonzeroUsage(rawUsage: unknown): Usage | undefined {
  const usage = callUsage(rawUsage)
  return usage && Object.values(usage).some((count) => (count ?? 0) > 0) ? usage : undefined
}

/** What a gateway such as OpenRouter says it charges. */
export function gatewayCost(usage: unknown): number | undefined {
  const { cost } = Object(usage) as { cost?: unknown }
  return typeof cost === 'number' && cost >= 0 ? cost : undefined
}
