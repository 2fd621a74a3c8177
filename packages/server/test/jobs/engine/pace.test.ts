import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPace } from '../../../src/jobs/engine/pace.ts'

/** A store in which a slice waits for its turn and then takes `actMs`. */
function storeOf(actMs: number) {
  const gauges = {
    queuedBytes: 1,
    commits: 0,
    committedEvents: 0,
    actMs: 0,
    damagedPayloads: 0,
    damagedSettings: 0,
    diskFreeBytes: null,
    storeBytes: null,
    freeBytes: null,
    commitWaitMs: 0,
  }
  const sizes: number[] = []
  const slice = async (most: number): Promise<number> => {
    sizes.push(most)
    gauges.actMs += actMs
    return most
  }
  // Pauses end at once.
  const pace = createPace({ engine: 'sqlite', gauges: () => ({ ...gauges }) }, AbortSignal.abort())
  return { pace, slice, sizes, gauges }
}

test('slices grow while the work of one is short, and shrink when it is long', async () => {
  const short = storeOf(1)
  for (let n = 0; n < 8; n++) await short.pace.slice(short.slice)
  assert.deepEqual(short.sizes, [500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000])
  const long = async (most: number) => {
    short.gauges.actMs += 99
    return short.slice(most)
  }
  for (let n = 0; n < 5; n++) await short.pace.slice(long)
  assert.deepEqual(short.sizes.slice(8), [5_000, 2_500, 1_250, 625, 500])
})

test('the wait for its turn does not make a slice smaller', async () => {
  const { pace, slice, sizes } = storeOf(1)
  const late = async (most: number) => {
    await new Promise((resolve) => setTimeout(resolve, 60))
    return slice(most)
  }
  for (let n = 0; n < 3; n++) await pace.slice(late)
  assert.deepEqual(sizes, [500, 1_000, 2_000])
})
