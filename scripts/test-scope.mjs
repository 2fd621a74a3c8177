// Loaded into every process of test files, before Node's test runner. To know which test an error belongs to, the runner notes
// each promise, timer and socket of the process in a hook when it is made and when it is gone: a fifth of the processor time of
// requests. Here, what a test starts carries the test's id with it, as a store does, and the runner reads that one.
import asyncHooks, { AsyncLocalStorage } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

// As in test-end.mjs: threads and forked processes run no tests.
if (isMainThread && /\.test\.m?[jt]s$/.test(process.argv[1] ?? '')) {
  const { AsyncResource, createHook, executionAsyncId } = asyncHooks
  const running = new AsyncLocalStorage()
  let noteTest = () => undefined

  // The runner's tests extend it.
  asyncHooks.AsyncResource = class extends AsyncResource {
    constructor(type, options) {
      super(type, options)
      noteTest(this.asyncId(), type, this.triggerAsyncId(), this)
    }

    runInAsyncScope(work, receiver, ...args) {
      return super.runInAsyncScope(() => running.run(this.asyncId(), () => Reflect.apply(work, receiver, args)))
    }
  }
  asyncHooks.executionAsyncId = () => running.getStore() ?? executionAsyncId()
  asyncHooks.createHook = ({ init }) => {
    noteTest = init
    return { enable: () => undefined, disable: () => undefined }
  }
  // The runner keeps what it finds now; everybody else has Node's own.
  await import('node:test')
  Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId })
  syncBuiltinESMExports()
}
