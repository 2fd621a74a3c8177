import { compileCondition, type Compiled } from './compile.ts'
import { POLICY_LIMITS } from './limits.ts'

const cache = new Map<string, Compiled>()

/** compileCondition with a cache by source: compiling takes 50 to 200 µs, deciding only a few. Faults are cached too. */
export function compiled(source: string, ofLabels = false): Compiled {
  const key = ofLabels ? `labels ${source}` : source
  const known = cache.get(key)
  if (known) return known
  const result = compileCondition(source, ofLabels)
  if (cache.size >= POLICY_LIMITS.cachedConditions) cache.delete(cache.keys().next().value as string)
  cache.set(key, result)
  return result
}
