/** The words for tokens and costs that nobody recorded: they are not zero. Lists of the console and the commands use the same. */
interface Used {
  usage: { cost: number; totalTokens: number }
  estimatedCost: number | null
  /** Calls that have neither a cost nor a price. */
  unpricedCalls: number
}

export type UnknownWord = 'unknown' | 'not recorded'

/** `unknown`: there were calls. `not recorded`: nothing says that a model was called. Null: the cost is known. */
export function unknownCost({ usage, estimatedCost, unpricedCalls }: Used): UnknownWord | null {
  if (usage.cost > 0 || estimatedCost !== null) return null
  if (unpricedCalls > 0) return 'unknown'
  return usage.totalTokens === 0 ? 'not recorded' : null
}

export function unknownTokens({ usage, estimatedCost, unpricedCalls }: Used): UnknownWord | null {
  if (usage.totalTokens > 0) return null
  return usage.cost > 0 || estimatedCost !== null || unpricedCalls > 0 ? 'unknown' : 'not recorded'
}
