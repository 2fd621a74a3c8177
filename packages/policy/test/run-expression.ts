import { build } from '../src/evaluation/build.ts'
import { checkTypes } from '../src/language/check.ts'
import { factReader } from '../src/input/facts.ts'
import { parse } from '../src/language/parse.ts'
import { checkRules } from '../src/language/rules.ts'
import { SyntaxFault } from '../src/language/tokens.ts'
import { type Failure, Scope, type Value } from '../src/evaluation/value.ts'
import type { Facts } from '../src/language/variables.ts'

/** Like compileCondition and evaluate, for expressions of any type. Undefined if the source is rejected. */
export function run(source: string, facts: Facts = { tool: { name: '' }, now: 0 }): Value | Failure | undefined {
  let root
  try {
    root = parse(source)
  } catch (error) {
    if (error instanceof SyntaxFault) return undefined
    throw error
  }
  if (checkRules(root, source, false).length > 0) return undefined
  let isRefused = false
  checkTypes(root, () => (isRefused = true))
  return isRefused ? undefined : build(root)(new Scope(factReader(facts)))
}
