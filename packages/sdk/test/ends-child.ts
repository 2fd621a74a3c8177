/** An agent that ends in one of the ways of docs/sdk/delivery.md. Arguments: way, place, the service's address, options. */
import { writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Tacho, type TachoOptions } from '../src/index.ts'

const [way = '', place = '', baseUrl = '', options = '{}'] = process.argv.slice(2)
// On a slow machine, the client must not give up waiting for its policies.
const guard = { configurationWaitMs: 60_000 }
const tacho = new Tacho({ apiKey: 'key', baseUrl, clientId: 'child', guard, ...(JSON.parse(options) as TachoOptions) })

function failing(): Error {
  const cause = new RangeError('no stock', { cause: 'the warehouse is closed' })
  return new TypeError('order failed with password=hunter2-hunter2', { cause })
}

const never = () => new Promise<never>(() => undefined)

/** Ends the process in its way. Ways that need a later event or a signal return a promise that stays pending. */
async function end(): Promise<void> {
  switch (way) {
    case 'throw':
      throw failing()
    case 'rejection':
      void Promise.reject(failing())
      return never()
    case 'exit':
      return process.exit(7)
    case 'end of work':
      return never()
    case 'out of memory': {
      const kept: string[][] = []
      for (;;) kept.push(Array.from({ length: 100_000 }, (_, n) => `${n} ${kept.length}`))
    }
    default:
      // The parent sends a signal.
      if (way === 'SIGKILL' && place === 'the first call') {
        writeSync(1, 'ready\n')
        // Block the thread, so that no other code runs.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
      }
      setInterval(() => undefined, 1_000)
      writeSync(1, 'ready\n')
      return never()
  }
}

const ran = tacho.run({ runId: 'ends', agentName: 'child' }, async (run) => {
  run.step('begun')
  // `a second later` waits for the first delivery. The other places flush, except `the first call`.
  if (place === 'a second later') while (tacho.counters().accepted === 0) await setTimeout(10)
  else if (place !== 'the first call') {
    await tacho.flush()
    run.step('later')
  }
  tacho.reportIssue({ detectionType: 'CUSTOM' })
  if (way === 'late throw') return
  if (place === 'a tool') await tacho.guard(end, { name: 'tool' })()
  else if (place === 'a model call') await run.span('model', end)
  else await end()
})
if (way === 'late throw')
  await ran.then(() => {
    throw failing()
  })
await (way === 'end of work' ? undefined : ran)
