import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitForTurn } from '@tacho/server/http/turns.ts'

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
