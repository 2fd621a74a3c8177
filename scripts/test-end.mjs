// Loaded into every process of test files. Fails the process if it does not end by itself after its tests: a server, timer
// or pool that stays open would also keep the service from stopping.
import { isMainThread } from 'node:worker_threads'

// The process fails after GRACE_MS: as long as a test may take, so that a slow machine does not look like a leak. It prints
// the open resources earlier, after NAMED_AFTER_MS.
const GRACE_MS = 60_000
const NAMED_AFTER_MS = 5_000

// Worker threads and forked processes inherit the flag that loads this file, but run no tests.
if (isMainThread && /\.test\.m?[jt]s$/.test(process.argv[1] ?? '')) {
  // Not imported above: each thread would load it.
  const { after } = await import('node:test')
  after(() => {
    setTimeout(nameOpenResources, NAMED_AFTER_MS).unref()
    setTimeout(() => {
      nameOpenResources()
      process.exit(1)
    }, GRACE_MS).unref()
  })
}

function nameOpenResources() {
  console.error(`Still open after the last test: ${process.getActiveResourcesInfo().join(', ')}`)
}
