// Loaded into every process of test files. Starts the server's threads from the build, as the program of users does: loading
// one thread from its hundred sources takes as long as the rest of a server's start.
import { syncBuiltinESMExports } from 'node:module'
import workerThreads, { isMainThread } from 'node:worker_threads'

// Only in the main thread: threads of the server start no threads.
if (isMainThread && process.env.TEST_MODULES !== undefined) {
  const built = new Map(JSON.parse(process.env.TEST_MODULES).map(([source, file]) => [source, new URL(file)]))
  workerThreads.Worker = class extends workerThreads.Worker {
    constructor(program, options) {
      const file = built.get(String(program))
      // With the flags of this process, each thread would also load what `--import` names, which takes 5 ms.
      if (file) super(file, { execArgv: [], ...options })
      else super(program, options)
    }
  }
  syncBuiltinESMExports()
}
