import assert from 'node:assert/strict'
import { test } from 'node:test'
import { every } from '@tacho/server/jobs/engine/timers.ts'

const pass = () => new Promise<void>((resolve) => setTimeout(resolve, 1))

test('a job runs at once and again, also after a failure', async () => {
  const errors: unknown[] = []
  let runs = 0
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  const job = every({
    intervalMs: 1,
    onError: (error) => errors.push(error),
    async run() {
      runs += 1
      if (runs === 3) resolve()
      if (runs === 1) throw new Error('first')
    },
  })
  await enough
  await job.stop()
  assert.equal(errors.length, 1)
})

test('a job never overlaps itself, and stop waits for the current run', async () => {
  let running = 0
  let most = 0
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const job = every({
    intervalMs: 0,
    onError: (error) => assert.fail(String(error)),
    async run() {
      running += 1
      most = Math.max(most, running)
      resolve()
      await pass()
      running -= 1
    },
  })
  await begun
  await job.stop()
  assert.deepEqual([running, most], [0, 1])
})

test('stop ends a long pause and no run follows', async () => {
  let runs = 0
  const job = every({
    intervalMs: 1_000_000,
    onError: (error) => assert.fail(String(error)),
    run: async () => void (runs += 1),
  })
  await job.stop()
  await job.stop()
  await pass()
  assert.equal(runs, 1)
})
