import { compileCondition, type Compiled } from './compile.ts'
import { POLICY_LIMITS } from './limits.ts'

const cache = new Map<string, Compiled>()

/** compileCondition with a cache by source: compiling takes 50 to 200 µs, deciding only a few. Faults are cached too. */
export function compiled(source: string): Compiled {
  const known = cache.get(source)
  if (known) return known
  const result = compileCondition(source)
  if (cache.size >= POLICY_LIMITS.cachedConditions) cache.delete(cache.keys().next().value as string)
  cache.set(source, result)
  return result
}
