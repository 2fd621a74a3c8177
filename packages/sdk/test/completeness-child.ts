/** A process that takes part in a run. Arguments: its role, the service's address, the key, options or a handle as JSON. */
import { writeSync } from 'node:fs'
import { Tacho, type RunHandle, type TachoOptions } from '../src/index.ts'

const [part = '', baseUrl = '', apiKey = '', json = '{}'] = process.argv.slice(2)
const given = JSON.parse(json) as TachoOptions & { handle?: RunHandle; runId?: string }
const { handle, runId, ...options } = given
const tacho = new Tacho({ apiKey, baseUrl, clientId: `child ${part}`, ...options })

if (part === 'works' && handle) {
  const run = tacho.resume(handle)
  for (let n = 0; n < 5; n++) run.step('worked')
  run.leave()
  await tacho.shutdown()
} else if (part === 'dies') {
  const run = tacho.startRun({ runId, agentName: 'dies' })
  for (let n = 0; n < 5; n++) run.step('delivered')
  await tacho.flush()
  for (let n = 0; n < 3; n++) run.step('in memory')
  // Keeps this process running until its parent kills it.
  setInterval(() => undefined, 1_000)
  writeSync(1, 'ready\n')
}
