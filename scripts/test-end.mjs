// Loaded into every test file's process. A file whose tests are over must end by itself: what it left open (a server, a
// timer, a pool) would also keep the service from stopping.
import { after } from 'node:test'
import { isMainThread } from 'node:worker_threads'

const graceMs = 5_000

// Worker threads and forked processes inherit the flag that loads this file; they run no tests.
if (isMainThread && process.argv[1]?.endsWith('.test.ts')) {
  after(() => {
    setTimeout(() => {
      console.error(`Still open after the last test: ${process.getActiveResourcesInfo().join(', ')}`)
      process.exit(1)
    }, graceMs).unref()
  })
}
