import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import fc from 'fast-check'
import type { FastifyReply } from 'fastify'
import { LEFT, refuse } from '../../../src/http/web/reply-error.ts'
import { createSharedTurns, createTurnsOfWorkspaces, type Turn } from '../../../src/http/web/turns.ts'

const isOver = () => false
const WAITING = LIMITS.turnsWaiting
const TOO_MANY = refuse('overloaded', 'Too many searches of this workspace are waiting')

function turns(atOnce: number) {
  const takeTurn = createTurnsOfWorkspaces(atOnce, 'searches')
  return <Result>({ holder, isOver: hasLeft, run }: Turn<Result>): Promise<Result> => {
    const request = { apiKey: { workspaceId: holder.workspace, id: holder.credential } }
    return takeTurn({ request, raw: { destroyed: hasLeft() } } as FastifyReply, run)
  }
}

/** The holder of a turn: a workspace, and one of its tokens. */
const by = (workspace: string, credential = 'token') => ({ workspace, credential })

test('one search of a workspace runs at a time, few at once, and all get their turn', async () => {
  const workspaces = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), {
    minLength: 1,
    maxLength: 10,
  })
  await fc.assert(
    fc.asyncProperty(workspaces, fc.boolean(), async (asked, areFailing) => {
      const takeTurn = turns(2)
      const running: string[] = []
      const begun: string[] = []
      const answers = await Promise.allSettled(
        asked.map((workspace, index) => {
          const run = async () => {
            assert.ok(!running.includes(workspace) && running.length < 2)
            running.push(workspace)
            begun.push(`${workspace} ${index}`)
            await new Promise(setImmediate)
            running.splice(running.indexOf(workspace), 1)
            if (areFailing) throw new Error('away')
          }
          return takeTurn({ holder: by(workspace), isOver, run })
        }),
      )
      const expected = areFailing ? 'rejected' : 'fulfilled'
      assert.deepEqual(
        answers.map(({ status }) => status),
        asked.map(() => expected),
      )
      for (const workspace of asked) {
        const own = (places: string[]) => places.filter((place) => place.startsWith(workspace))
        assert.deepEqual(own(begun), own(asked.map((name, index) => `${name} ${index}`)), 'in order')
      }
    }),
  )
})

test('searches of one workspace wait up to a bound, one token up to half of it, and others get their turn', async () => {
  const takeTurn = turns(2)
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const search = (workspace: string, credential: string) =>
    takeTurn({ holder: by(workspace, credential), isOver, run: () => going.then(() => 'found') })
  const first = search('a', 'first')
  const half = WAITING / 2
  const allowed = Array.from({ length: half }, () => search('a', 'first'))
  await assert.rejects(search('a', 'first'), TOO_MANY)
  allowed.push(...Array.from({ length: half }, () => search('a', 'second')))
  await assert.rejects(search('a', 'third'), TOO_MANY)
  const other = search('b', 'first')
  go()
  assert.deepEqual(new Set(await Promise.all([first, ...allowed, other])), new Set(['found']))
})

test('a search whose client left while it waited does not run', async () => {
  const takeTurn = turns(1)
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const first = takeTurn({ holder: by('a'), isOver, run: () => going })
  let ran = false
  const left = takeTurn({ holder: by('a'), isOver: () => true, run: async () => (ran = true) })
  go()
  await Promise.all([first, assert.rejects(left, LEFT)])
  assert.equal(ran, false)
})

test('work that is away lets others of its token run, and still counts', async () => {
  const takeTurn = createSharedTurns({
    running: { most: 1, ofWorkspace: 1, ofCredential: 1 },
    waiting: { most: 1, ofWorkspace: 1, ofCredential: 1 },
    tooMany: TOO_MANY,
  })
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  let running = 0
  const alone = async <Result>(work: () => Result): Promise<Result> => {
    running += 1
    await new Promise(setImmediate)
    assert.equal(running--, 1)
    return work()
  }
  const first = takeTurn({
    holder: by('a'),
    isOver,
    run: async (away) => {
      await away(() => going)
      return alone(() => 'back')
    },
  })
  const others = ['one', 'other'].map((name) => takeTurn({ holder: by('a'), isOver, run: () => alone(() => name) }))
  const told = others.map((other) => other.catch((error: unknown) => error))
  assert.deepEqual(await Promise.all(told), ['one', TOO_MANY])
  const last = takeTurn({ holder: by('a'), isOver, run: () => alone(() => 'last') })
  go()
  assert.deepEqual(await Promise.all([first, last]), ['back', 'last'])
})

test('work whose wait fails has its turn again until it ends', async () => {
  const takeTurn = turns(1)
  const first = takeTurn({
    holder: by('a'),
    isOver,
    run: (away) => away(() => Promise.reject(new Error('away'))),
  })
  await assert.rejects(first, /away/)
  assert.equal(await takeTurn({ holder: by('a'), isOver, run: async () => 'next' }), 'next')
})
