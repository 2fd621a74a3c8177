import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSearchTurns } from '../../../src/http/operator/search-turns.ts'
import { isRefusal } from '../../../src/http/reply-error.ts'

test('one search of an environment runs at a time, few at once, all get their turn, and those over the bound are refused', async () => {
  const environments = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(environments, fc.boolean(), async (asked, areFailing) => {
      const takeTurn = createSearchTurns({ atOnce: 2, ofEnvironment: 4 })
      const running: string[] = []
      const answers = await Promise.allSettled(
        asked.map((environment) =>
          takeTurn(environment, async () => {
            assert.ok(!running.includes(environment) && running.length < 2)
            running.push(environment)
            await new Promise(setImmediate)
            running.splice(running.indexOf(environment), 1)
            if (areFailing) throw new Error('away')
            return environment
          }),
        ),
      )
      for (const [index, answer] of answers.entries()) {
        const before = asked.slice(0, index).filter((environment) => environment === asked[index]).length
        const isRefused = answer.status === 'fulfilled' && isRefusal(answer.value)
        assert.equal(isRefused, before >= 4)
        if (!isRefused) assert.equal(answer.status, areFailing ? 'rejected' : 'fulfilled')
      }
      assert.deepEqual(running, [])
    }),
  )
})
