import { build } from '../src/build.ts'
import { checkTypes } from '../src/check.ts'
import { factReader } from '../src/facts.ts'
import { parse } from '../src/parse.ts'
import { checkRules } from '../src/rules.ts'
import { SyntaxFault } from '../src/tokens.ts'
import { type Failure, Scope, type Value } from '../src/value.ts'
import type { Facts } from '../src/variables.ts'

/** Like compileCondition and evaluate, for expressions of any type. Undefined if the source is rejected. */
export function run(source: string, facts: Facts = { tool: { name: '' }, now: 0 }): Value | Failure | undefined {
  let root
  try {
    root = parse(source)
  } catch (error) {
    if (error instanceof SyntaxFault) return undefined
    throw error
  }
  if (checkRules(root, source).length > 0) return undefined
  let isRefused = false
  checkTypes(root, () => (isRefused = true))
  return isRefused ? undefined : build(root)(new Scope(factReader(facts)))
}
