// Loaded into every process of test files: the server's threads start from the build, as in the program that users run.
// Loading a thread from a hundred sources takes as long as all else that a server starts.
import { syncBuiltinESMExports } from 'node:module'
import workerThreads, { isMainThread } from 'node:worker_threads'

// A thread of the server starts no other one.
if (isMainThread && process.env.TEST_MODULES !== undefined) {
  const built = new Map(JSON.parse(process.env.TEST_MODULES).map(([source, file]) => [source, new URL(file)]))
  workerThreads.Worker = class extends workerThreads.Worker {
    constructor(program, options) {
      super(built.get(String(program)) ?? program, options)
    }
  }
  syncBuiltinESMExports()
}
