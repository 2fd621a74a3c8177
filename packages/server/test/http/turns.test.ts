import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inTurns, waitForTurn } from '@tacho/server/http/turns.ts'

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
