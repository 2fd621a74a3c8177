import assert from 'node:assert/strict'
import { compileCondition, type Condition } from '../src/compile.ts'
import { evaluate } from '../src/evaluate.ts'
import type { Facts } from '../src/language/variables.ts'

export function condition(source: string): Condition {
  const compiled = compileCondition(source)
  assert.ok(compiled.ok, `${source}: ${compiled.ok ? '' : JSON.stringify(compiled.faults)}`)
  return compiled.condition
}

/** The message of the first fault. */
export function faultOf(source: string): string {
  const compiled = compileCondition(source)
  assert.ok(!compiled.ok, `${source} compiles`)
  assert.ok(compiled.faults.length > 0)
  return compiled.faults[0]?.message ?? ''
}

/** True, false, or the error message. */
export function resultOf(source: string, input: unknown = {}, facts: Partial<Facts> = {}): boolean | string {
  const tool = { name: 'refund', input: input as Record<string, unknown> }
  const result = evaluate(condition(source), { tool, now: 0, ...facts })
  return result.ok ? result.matched : result.message
}
