import assert from 'node:assert/strict'
import { test } from 'node:test'
import { celEnv, type CelInput, isCelError, parse, plan } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { compileCondition } from '../src/compile.ts'
import { evaluate } from '../src/evaluate.ts'
import type { Facts } from '../src/language/variables.ts'
import { expressions, inputs } from './generators.ts'

const env = celEnv({ funcs: strings })

/** The result of another CEL engine, or undefined for any error. */
function oracle(source: string, facts: Facts): unknown {
  const { tool, agent, run, session, risk, now } = facts
  const bindings = {
    tool: { name: tool.name, input: toMap(tool.input) },
    agent: { id: agent?.id ?? '', name: agent?.name ?? '' },
    run: {
      id: run?.id ?? '',
      cost: run?.cost ?? 0,
      totalTokens: BigInt(run?.totalTokens ?? 0),
      toolCalls: BigInt(run?.toolCalls ?? 0),
    },
    session: { id: session?.id ?? '' },
    risk: { signals: risk?.signals ?? [] },
    now: timestampFromMs(now),
  }
  try {
    const result = plan(env, parse(source))(bindings as unknown as Record<string, CelInput>)
    return isCelError(result) ? undefined : result
  } catch {
    return undefined
  }
}

/** Objects with a `__proto__` key would lose it. */
function toMap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toMap)
  if (typeof value !== 'object' || value === null) return value
  return new Map(Object.entries(value).map(([key, inner]) => [key, toMap(inner)]))
}

const text = fc.constantFrom('', 'a', 'refund', 'é😀')
const facts: fc.Arbitrary<Facts> = fc.record({
  tool: fc.record({ name: text, input: inputs({ nulls: false }) }),
  agent: fc.record({ id: text, name: text }),
  run: fc.record({ id: text, cost: fc.constantFrom(0, 1.5, 12), totalTokens: fc.nat(9), toolCalls: fc.nat(3) }),
  session: fc.record({ id: text }),
  risk: fc.record({ signals: fc.array(text, { maxLength: 3 }) }),
  now: fc.constantFrom(0, Date.UTC(2026, 2, 29, 0, 59, 59, 999), Date.UTC(2026, 11, 31, 23, 30), -1),
})

test('conditions give the same results as another CEL engine', () => {
  let compared = 0
  fc.assert(
    fc.property(expressions, fc.array(facts, { minLength: 3, maxLength: 3 }), (source, several) => {
      const compiled = compileCondition(source)
      if (!compiled.ok) return
      for (const one of several) {
        const ours = evaluate(compiled.condition, one)
        compared++
        assert.equal(
          ours.ok ? ours.matched : undefined,
          oracle(source, one),
          `${source}\n${JSON.stringify(one)}\n${JSON.stringify(ours)}`,
        )
      }
    }),
    { numRuns: 2000 },
  )
  assert.ok(compared > 1000, `only ${compared} comparisons`)
})
