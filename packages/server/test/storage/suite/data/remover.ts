/**
 * Retention, erasure and the deletion of environments on a store, until all is done. Prints a line when a slice begins, so that
 * removal-crash.ts can kill it in the middle of one.
 */
import { flushCompileCache } from 'node:module'
import { setTimeout as wait } from 'node:timers/promises'
import { deleteEnvironments, erase } from '../../../../src/jobs/data/erase.ts'
import { retain } from '../../../../src/jobs/data/retain.ts'
import { createWorkRunner } from '../../../../src/jobs/engine/work.ts'
import { openPostgresStorage } from '../../../../src/storage/postgres/open.ts'
import { openSqliteStorage } from '../../../../src/storage/sqlite/open.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { newId } from '../sample.ts'

const [place = ''] = process.argv.slice(2)
const onTrouble = (error: Error) => {
  throw error
}
const opened: Storage = place.startsWith('postgres')
  ? await openPostgresStorage({ url: place, poolSize: 2 })
  : await openSqliteStorage({ directory: place, minFreeDiskBytes: 0, readers: 1, onTrouble })

// Write the compile cache now: the process may be killed, and each new one would compile the sources again.
flushCompileCache()

const SLICES = new Set<string | symbol>([
  'removeExpiredRuns',
  'deleteExpiredEvents',
  'removeErased',
  'deleteErased',
  'deleteFromEnvironment',
])
const storage = new Proxy(opened, {
  get(target, name) {
    const member: unknown = Reflect.get(target, name)
    if (typeof member !== 'function') return member
    return (...args: unknown[]): unknown => {
      if (SLICES.has(name)) process.stdout.write(`${String(name)}\n`)
      return Reflect.apply(member, target, args)
    }
  },
})
// These are not promises.
const all = Object.assign(Object.create(storage) as Storage, {
  gauges: () => opened.gauges(),
  engine: opened.engine,
})

const now = Date.now
const runner = createWorkRunner({
  storage: all,
  handlers: [
    retain({ storage: all, now }),
    erase({ storage: all, now, slice: 40, pauseMs: 1 }),
    deleteEnvironments({ storage: all, now }),
  ],
  owner: newId(),
  now,
  onError: (error) => process.stderr.write(`${String(error)}\n`),
  pollMs: 20,
  leaseMs: 400,
})
runner.start()
const KINDS: ReadonlySet<string> = new Set(['retain', 'erase', 'delete_environment'])
while ((await opened.workBacklog(now())).some(({ kind }) => KINDS.has(kind))) await wait(20)
await runner.stop()
await opened.close()
