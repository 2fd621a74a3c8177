import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inTurns, mapInTurns, waitForTurn } from '@tacho/server/http/web/turns.ts'

test('pieces of work run in order, one in each turn of the event loop', async () => {
  const seen: string[] = []
  let isOver = false
  const tick = () => {
    seen.push('-')
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  await Promise.all(['a', 'b', 'c'].map(async (piece) => void (await waitForTurn(), seen.push(piece))))
  isOver = true
  assert.match(seen.join(''), /a-+b-+c/)
})

test('workspaces take turns, however many of one wait', async () => {
  const seen: string[] = []
  const work = async (workspace: string, credential: string): Promise<void> => {
    await waitForTurn({ workspace, credential })
    seen.push(workspace + credential)
  }
  const loud = Array.from({ length: 10 }, (_, n) => work('a', String(n % 2)))
  await Promise.all([...loud, work('b', '0'), work('b', '0'), work('c', '0')])
  assert.equal(seen.slice(0, 6).join(' '), 'a0 b0 c0 a1 b0 a0')
})

test('a long list is mapped in order, a bounded number of its items in each turn', async () => {
  let [mapped, most, isOver] = [0, 0, false]
  const tick = () => {
    most = Math.max(most, mapped)
    mapped = 0
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  const items = Array.from({ length: 25 }, (_, item) => item)
  const results = await mapInTurns(items, 10, (item) => (mapped++, item * 2))
  isOver = true
  assert.deepEqual(
    results,
    items.map((item) => item * 2),
  )
  assert.ok(most <= 10, `${most} in a turn`)
  assert.deepEqual(await mapInTurns([], 10, String), [])
})

test('streams whose reader takes everything at once get one piece in each turn, all together', async () => {
  async function* pieces() {
    for (let piece = 0; piece < 20; piece++) yield piece
  }
  let [taken, most, isOver] = [0, 0, false]
  const tick = () => {
    most = Math.max(most, taken)
    taken = 0
    if (!isOver) setImmediate(tick)
  }
  const readAll = async () => {
    const read: number[] = []
    for await (const piece of inTurns(pieces())) {
      read.push(piece)
      if (read.length > 1) taken += 1
    }
    return read
  }
  setImmediate(tick)
  const all = await Promise.all(Array.from({ length: 8 }, readAll))
  isOver = true
  for (const read of all) {
    assert.deepEqual(
      read,
      Array.from({ length: 20 }, (_, piece) => piece),
    )
  }
  assert.equal(most, 1)
})
