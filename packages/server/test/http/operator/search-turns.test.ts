import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSearchTurns } from '../../../src/http/operator/search-turns.ts'

test('one search of an environment runs at a time, few at once, and all get their turn', async () => {
  const environments = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(environments, fc.boolean(), async (asked, areFailing) => {
      const takeTurn = createSearchTurns(2)
      const running: string[] = []
      const begun: string[] = []
      const answers = await Promise.allSettled(
        asked.map((environment, index) =>
          takeTurn(environment, async () => {
            assert.ok(!running.includes(environment) && running.length < 2)
            running.push(environment)
            begun.push(`${environment} ${index}`)
            await new Promise(setImmediate)
            running.splice(running.indexOf(environment), 1)
            if (areFailing) throw new Error('away')
          }),
        ),
      )
      const expected = areFailing ? 'rejected' : 'fulfilled'
      assert.deepEqual(
        answers.map(({ status }) => status),
        asked.map(() => expected),
      )
      for (const environment of asked) {
        const own = (places: string[]) => places.filter((place) => place.startsWith(environment))
        assert.deepEqual(own(begun), own(asked.map((name, index) => `${name} ${index}`)), 'in order')
      }
    }),
  )
})
