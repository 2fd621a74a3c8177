/** Writes events until it is killed, and prints a line for each acknowledged one. Used by crash.test.ts. */
import { flushCompileCache } from 'node:module'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import { append, llmCall, newId } from '../suite/sample.ts'

const [directory = '', environmentId = ''] = process.argv.slice(2)
const storage = await openSqliteStorage({
  directory,
  minFreeDiskBytes: 0,
  readers: 1,
  onTrouble: (error) => {
    throw error
  },
})

// Write the compile cache now: the process is killed, and each new one would compile the sources again.
flushCompileCache()

async function writeForEver() {
  for (;;) {
    const tokens = { promptTokens: 1, completionTokens: 2, totalTokens: 3, costNanos: 4 }
    const events = Array.from({ length: 20 }, (_, n) => llmCall(tokens, { eventId: newId(), runId: `run ${n % 5}` }))
    const verdicts = await append(storage, environmentId, ...events)
    if (verdicts.some((verdict) => verdict !== 'stored')) throw new Error(verdicts.join())
    process.stdout.write(events.map(({ runId, eventId }) => `${runId}\t${eventId}\n`).join(''))
  }
}

await Promise.all(Array.from({ length: 4 }, writeForEver))
