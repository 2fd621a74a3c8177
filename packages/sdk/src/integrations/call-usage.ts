import { fields } from './host.ts'
import { callCounts, type CallCounts } from '../recording/usage-shapes.ts'

/** Null: unknown. `cachedTokens` and other parts are part of `promptTokens` or `completionTokens`. Parts of zero tokens are left out. */
export type Usage = { [Name in Exclude<keyof CallCounts, 'invalid' | 'unknown'>]?: number | null }

/** Undefined: the answer has no token counts. */
export function callUsage(rawUsage: unknown): Usage | undefined {
  const counts = callCounts(rawUsage)
  if (counts === null) return undefined
  const { invalid: _, unknown, ...known } = counts
  const isSaid = ([name, count]: [string, number | null]) =>
    count !== null && (count > 0 || /^(?:prompt|completion|total)Tokens$/.test(name))
  const usage = Object.fromEntries(Object.entries(known).filter(isSaid)) as Usage
  // Write null: without the member, the service would assume no completion, as for embeddings.
  if (unknown.includes('completionTokens')) usage.completionTokens ??= null
  return usage
}

/** Some frameworks begin counting at zero, so zero means unknown. */
export function nonzeroUsage(rawUsage: unknown): Usage | undefined {
  const usage = callUsage(rawUsage)
  return usage && Object.values(usage).some((count) => (count ?? 0) > 0) ? usage : undefined
}

/** The cost that a gateway reports, in the usage or in metadata under its own name. AI Gateway sends a text, others a number. */
export function gatewayCost(usage: unknown, metadata?: unknown): number | undefined {
  const added: unknown[] = Object.values(Object(metadata) as object)
  for (const place of [usage, ...added, ...added.map((one) => fields(one)['usage'])]) {
    const { cost, total_cost = cost, response_cost = total_cost, costUSD = response_cost } = fields(place)
    // Perplexity reports an object with the parts and the total.
    const stated = fields(costUSD)['total_cost'] ?? costUSD
    const amount = typeof stated === 'string' && stated.trim() !== '' ? Number(stated) : stated
    if (Number.isFinite(amount) && (amount as number) >= 0) return amount as number
  }
  return undefined
}
