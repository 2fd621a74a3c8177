import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/limits.ts'
import fc from 'fast-check'
import { createSearchTurns, TOO_MANY } from '../../../src/http/operator/search-turns.ts'

const isOver = () => false

test('one search of an environment runs at a time, few at once, and all get their turn', async () => {
  const environments = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), {
    minLength: 1,
    maxLength: LIMITS.searchesWaiting,
  })
  await fc.assert(
    fc.asyncProperty(environments, fc.boolean(), async (asked, areFailing) => {
      const takeTurn = createSearchTurns(2)
      const running: string[] = []
      const begun: string[] = []
      const answers = await Promise.allSettled(
        asked.map((environmentId, index) => {
          const run = async () => {
            assert.ok(!running.includes(environmentId) && running.length < 2)
            running.push(environmentId)
            begun.push(`${environmentId} ${index}`)
            await new Promise(setImmediate)
            running.splice(running.indexOf(environmentId), 1)
            if (areFailing) throw new Error('away')
          }
          return takeTurn({ environmentId, isOver, run })
        }),
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

test('searches of one environment wait up to a bound, and those of others get their turn', async () => {
  const takeTurn = createSearchTurns(2)
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const search = (environmentId: string) => takeTurn({ environmentId, isOver, run: () => going.then(() => 'found') })
  // One runs and the others wait.
  const allowed = Array.from({ length: 1 + LIMITS.searchesWaiting }, () => search('a'))
  assert.equal(await search('a'), TOO_MANY)
  const other = search('b')
  go()
  assert.deepEqual(new Set(await Promise.all([...allowed, other])), new Set(['found']))
})

test('a search whose client left while it waited does not run', async () => {
  const takeTurn = createSearchTurns(1)
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const first = takeTurn({ environmentId: 'a', isOver, run: () => going })
  let ran = false
  const left = takeTurn({ environmentId: 'a', isOver: () => true, run: async () => (ran = true) })
  go()
  await Promise.all([first, left])
  assert.equal(ran, false)
})
