import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TOKEN_NAMES } from '@tacho/contract/record/payload.ts'
import type { RunScope } from '../src/recording/context.ts'
import type { Observer } from '../src/core.ts'
import { createRunState } from '../src/recording/run-state.ts'
import { createRunUsages } from '../src/recording/run-usage.ts'
import { hostRuntime } from '../src/delivery/runtime.ts'
import { callCounts } from '../src/recording/usage-shapes.ts'

test("a run's tokens are counted under every name that the service counts", () => {
  const observers = new Set<Observer>()
  const usages = createRunUsages(
    { observers, runtime: hostRuntime },
    { callCounts, loadCounts: async () => callCounts },
  )
  const totalOf = (usage: unknown): number => {
    const scope = { state: createRunState() } as RunScope
    for (const observe of observers) observe(scope, { type: 'LLM_CALL', label: 'call', payload: { usage } })
    return usages.of(scope).totalTokens
  }
  for (const names of Object.values(TOKEN_NAMES)) {
    for (const [at, name] of names.entries()) {
      const later = Object.fromEntries(names.slice(at + 1).map((other) => [other, 9]))
      assert.equal(totalOf({ [name]: 4, ...later }), 4, name)
      assert.equal(totalOf({ ...later, [name]: null }), at + 1 < names.length ? 9 : 0, name)
    }
  }
  assert.equal(totalOf({ promptTokens: 2, output_tokens: 3 }), 5)
  assert.equal(totalOf({ input_tokens: 2, output_tokens: 3, total_tokens: 7 }), 7)
  for (const odd of [null, 5, 'many', [1]]) assert.equal(totalOf(odd), 0)
})

test('a usage that cannot be read costs no others, and until the names are loaded the first 1,000 are kept', async () => {
  const observers = new Set<Observer>()
  const usages = createRunUsages({ observers, runtime: hostRuntime }, { loadCounts: async () => callCounts })
  const scope = { state: createRunState() } as RunScope
  const send = (usage: unknown) => {
    for (const observe of observers) observe(scope, { type: 'LLM_CALL', label: 'call', payload: { usage } })
  }
  const unreadable = {
    get total() {
      throw new Error('unreadable')
    },
  }
  send({ inputTokens: unreadable })
  for (let call = 0; call < 1_005; call++) send({ totalTokens: 1 })
  await usages.load()
  assert.equal(usages.of(scope).totalTokens, 999)
  send({ totalTokens: 1 })
  send({ inputTokens: unreadable })
  send({ totalTokens: 1 })
  assert.equal(usages.of(scope).totalTokens, 1_001)
})
