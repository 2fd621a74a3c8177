/** A host that records and then ends. Arguments: how it ends, the service's address, options as JSON. */
import { writeSync } from 'node:fs'
import { Tacho, type TachoOptions } from '../src/index.ts'

const [way = '', baseUrl = '', options = '{}'] = process.argv.slice(2)
const given = JSON.parse(options) as TachoOptions & { events?: number; copy?: string }
const { events = 10, copy, ...rest } = given
// These ways have no listener, so diagnostics go to the console.
const listener = /reports|wait-for-flush/.test(way) ? {} : { onDiagnostic: () => undefined }
const tacho = new Tacho({ apiKey: 'key', baseUrl, clientId: 'child', ...listener, ...rest })
await tacho.ready()

const run = tacho.startRun({ runId: 'exit', agentName: 'child' })
for (let n = 0; n < events; n++) run.step(`step ${n}`)
if (copy !== undefined) {
  const { Tacho: Second } = (await import(copy)) as { Tacho: typeof Tacho }
  const second = new Second({ apiKey: 'key', baseUrl, clientId: 'second', ...listener, ...rest })
  await second.ready()
  second.startRun({ runId: 'second', agentName: 'child' }).step('of the copy')
}
// Synchronous, because the parent may kill this process as soon as it reads the line.
const say = (line: string) => writeSync(1, `${line}\n`)

// The host's own shutdown takes longer than ours.
const drain = () => {
  const drained = () => {
    say('drained')
    process.exit(3)
  }
  void tacho.flush().then(() => setTimeout(drained, 300))
}

switch (way) {
  case 'normal':
  case 'reports':
    break
  case 'return-later':
    setTimeout(() => run.step('late'), 20)
    break
  case 'throw':
    setTimeout(() => {
      throw new Error('the host failed')
    }, 1)
    break
  case 'wait-for-flush':
    await tacho.flush()
    break
  case 'exit':
  case 'exit-reports':
    process.exit(7)
    break
  case 'shutdown-500':
    say(JSON.stringify(await tacho.shutdown(500)))
    break
  case 'shutdown':
    say(JSON.stringify(await tacho.shutdown()))
    break
  case 'host-drains':
  case 'host-drains-once':
  case 'wait-with-more':
  case 'wait':
    if (way === 'wait-with-more') {
      // From now on, nothing is sent before the flush interval.
      await tacho.flush()
      run.step('more')
    }
    if (way === 'host-drains') process.on('SIGTERM', drain)
    if (way === 'host-drains-once') process.once('SIGTERM', drain)
    if (copy === undefined) setInterval(() => undefined, 1_000)
    else {
      const timer = setInterval(() => {
        if (process.listenerCount('SIGTERM') > 1) return
        say('one copy left')
        clearInterval(timer)
        setInterval(() => undefined, 1_000)
      }, 5)
    }
    say('ready')
    break
  default:
    throw new Error(`Unknown way: ${way}`)
}
