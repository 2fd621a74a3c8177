import { engine } from '../src/profile.ts'
import { build } from '../src/build.ts'
import { checkRules } from '../src/rules.ts'
import { factReader } from '../src/facts.ts'
import { type Failure, Scope, type Value } from '../src/value.ts'
import type { Facts } from '../src/variables.ts'

/** Like compileCondition and evaluate, for expressions of any type. Undefined when the profile refuses the source. */
export function run(source: string, facts: Facts = { tool: { name: '' }, now: 0 }): Value | Failure | undefined {
  let parsed
  try {
    parsed = engine.parse(source)
  } catch {
    return undefined
  }
  if (checkRules(parsed.ast, source).length > 0 || !parsed.check().valid) return undefined
  return build(parsed.ast)(new Scope(factReader(facts)))
}
