/** The words for tokens and costs that are not known: they are not zero. Console, commands and messages use the same. */
interface Used {
  usage: { cost: number; totalTokens: number }
  estimatedCost: number | null
  /** Calls whose cost is not in the other two, or not all of it. */
  unpricedCalls: number
}

const UNKNOWN = 'unknown'

/** Sent and estimated: `$1.20`, `≈ $1.20` if a part is estimated, `at least $1.20` if a part is missing, or `unknown`. */
export function costWords({ usage, estimatedCost, unpricedCalls }: Used, shown: (cost: number) => string): string {
  const isNone = usage.cost === 0 && estimatedCost === null
  if (isNone && usage.totalTokens === 0) return UNKNOWN
  const whole = shown(Math.round((usage.cost + (estimatedCost ?? 0)) * 1e9) / 1e9)
  if (unpricedCalls > 0) return isNone ? UNKNOWN : `at least ${whole}`
  return estimatedCost === null ? whole : `≈ ${whole}`
}

/** A sum of money without its parts. */
export function spentWords(cost: number, unpricedCalls: number, shown: (cost: number) => string): string {
  return costWords({ usage: { cost, totalTokens: 1 }, estimatedCost: null, unpricedCalls }, shown)
}

/** The sent cost, or null where it is not known: a run without one, or of which every cost is estimated. */
export const knownCost = ({ usage, estimatedCost, unpricedCalls }: Used): number | null =>
  usage.cost === 0 && (estimatedCost !== null || unpricedCalls > 0 || usage.totalTokens === 0) ? null : usage.cost

/** In total, or null where nothing said it. */
export const knownTokens = ({ totalTokens }: Used['usage']): number | null => (totalTokens === 0 ? null : totalTokens)

export const tokenWords = (totalTokens: number, shown: (tokens: number) => string): string =>
  totalTokens === 0 ? UNKNOWN : shown(totalTokens)

/** In a sentence: `15 tokens`, `tokens unknown`. */
export const tokensText = (totalTokens: number, shown: (tokens: number) => string): string =>
  totalTokens === 0 ? `tokens ${UNKNOWN}` : `${shown(totalTokens)} tokens`
