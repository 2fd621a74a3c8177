/** Sums of lost events, for the largest amount that a workspace can cause. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { completenessSums, placeOf, toSum } from '../../../src/domain/record/completeness.ts'
import { MOST_REASONS, MOST_RECORDERS, recordersText, type Recorder } from '../../../src/storage/record/completeness.ts'
import type { GapRow } from '../../../src/storage/runs/runs.ts'

const dropped = Array.from({ length: MOST_REASONS }, (_, reason) => ({
  reason: `reason_${reason}`,
  count: 1,
  lastAt: 1,
}))

function runWith(clients: readonly string[], highest = 100): GapRow {
  const recorders = clients.map((clientId, at): Recorder => {
    return { id: `a${1_000 + at}`, clientId, highest, arrived: 1, rejected: 0, isDone: false, dropped }
  })
  const run = { id: 'id', runId: 'run', startedAt: 0, agentId: 'agent', agentName: 'agent', agentDisplayName: null }
  return { ...run, recorders: recordersText(recorders) }
}

const spentMs = (work: () => unknown): number => {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

test('sorting the sums of as many clients as are read costs less than reading them, because only a page is written out', () => {
  const runs = Array.from({ length: LIMITS.summedRecorders / MOST_RECORDERS }, (_, run) =>
    runWith(Array.from({ length: MOST_RECORDERS }, (_, recorder) => `client ${run} ${recorder}`)),
  )
  const ratios = Array.from({ length: 5 }, () => {
    const sums = completenessSums('client')
    const adding = spentMs(() => runs.forEach(sums.add))
    const sorting = spentMs(() => assert.equal(sums.after(null).length, LIMITS.summedRecorders))
    return sorting / adding
  }).toSorted((a, b) => a - b)
  assert.ok((ratios[2] ?? 1) < 0.7, `sorting took ${ratios.map((ratio) => ratio.toFixed(2)).join()} of adding`)
})

test('a page continues after the last sum of the one before it, also among sums of the same loss', () => {
  const sums = completenessSums('client')
  for (const [clients, highest] of [[['b', 'a'], 10] as const, [['c'], 30] as const, [['a'], 5] as const]) {
    sums.add(runWith(clients, highest))
  }
  const all = sums.after(null).map(toSum)
  assert.deepEqual(
    all.map(({ key, runs }) => [key, runs]),
    [
      ['c', 1],
      ['a', 2],
      ['b', 1],
    ],
  )
  for (const [at, sum] of sums.after(null).entries()) {
    assert.deepEqual(sums.after(placeOf(sum)).map(toSum), all.slice(at + 1))
  }
})
