/** A process of an agent. Arguments: its role, the service, the key, a file that the tool writes, a handle, an approval. */
import { appendFileSync } from 'node:fs'
import { once } from 'node:events'
import { Tacho, ToolBlockedError, type RunHandle } from '../../sdk/src/index.ts'

const [act = '', baseUrl = '', apiKey = '', file = '', handle = '{}', approvalId = ''] = process.argv.slice(2)
const policies = [
  { policyId: 'p', name: 'p', version: '1', condition: 'true', severity: 'HIGH', action: 'REQUIRE_APPROVAL' },
]
const guard = { policies, configurationWaitMs: 60_000, approvalTimeoutMs: 600_000 }
const tacho = new Tacho({ apiKey, baseUrl, guard, onDiagnostic: () => undefined })
const refund = tacho.guard(
  (input: { order: string; amount: number }) => {
    appendFileSync(file, `${input.order} ${input.amount}\n`)
    return 'ran'
  },
  { name: 'refund' },
)
const input = { order: '1007', amount: 25 }
const say = (value: unknown) => console.log(JSON.stringify(value))

if (act === 'wait') {
  const run = tacho.startRun()
  say(run.toHandle())
  await run.within(() => refund(input))
} else if (act === 'pend') {
  const pending = tacho.guard((given: object) => given as unknown, { name: 'refund', approvalWaitMs: 0 })
  say(await pending(input).catch((error: ToolBlockedError) => ({ ...error.pending, handle: error.toHandle() })))
  await tacho.shutdown(60_000)
} else {
  const run = tacho.resume(JSON.parse(handle) as RunHandle)
  await tacho.configuration.ready(60_000)
  say('ready')
  await once(process.stdin, 'data')
  const proceed = act === 'again' ? () => refund(input) : () => tacho.continueCall(approvalId, refund)
  const result = await run.within(proceed).catch((error: unknown) => {
    if (error instanceof ToolBlockedError) return error.code
    throw error
  })
  say({ result, handle: run.toHandle() })
  await tacho.shutdown(60_000)
  process.exit()
}
