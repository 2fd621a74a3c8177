/**
 * A function on an edge platform. It has no `process`, so no code of the SDK runs when the platform ends it. It handles one
 * request, waits for the promises passed to `waitUntil`, and ends. Arguments: how it ends, the recording call, the service's
 * address.
 */
import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { hostRuntime } from '../src/delivery/runtime.ts'

const [way = '', call = '', baseUrl = ''] = process.argv.slice(2)
const { exit } = process
// Node's own fetch needs Buffer.
for (const name of ['process', 'setImmediate', 'global']) Reflect.deleteProperty(globalThis, name)
const { Tacho } = await import('../src/index.ts')
const tacho = new Tacho({ apiKey: 'key', baseUrl, flushIntervalMs: 3_600_000, flushTimeoutMs: 60_000 }, hostRuntime)
const handed: Promise<unknown>[] = []

async function handle(): Promise<void> {
  const waitUntil = call === '`waitUntil`' ? { waitUntil: (promise: Promise<unknown>) => handed.push(promise) } : {}
  await tacho.withRun({ runId: 'edge', ...waitUntil }, async (run) => {
    run.step('begun')
    if (way === 'SIGKILL') {
      while (tacho.counters().accepted === 0) await wait(10)
      run.step('later')
      writeSync(1, 'ready\n')
      await new Promise(() => setInterval(() => undefined, 1_000))
    }
    await wait(1)
    run.step('later')
    if (way === 'throw') throw new TypeError('order failed')
  })
}

// The platform answers 500 after a throw, then waits, then drops the function.
await handle().catch(() => undefined)
await Promise.all(handed)
exit(0)
