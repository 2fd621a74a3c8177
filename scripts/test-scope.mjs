// Loaded into every process of test files, before Node's test runner. To find the test that caused an error, the runner uses an
// async hook on every promise, timer and socket of the process. In tests that send requests, the hook takes a fifth of the
// processor time. This file replaces the hook: an AsyncLocalStorage holds the id of the running test, and the runner reads it.
import asyncHooks, { AsyncLocalStorage } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

// As in test-end.mjs: threads and forked processes run no tests.
if (isMainThread && /\.test\.m?[jt]s$/.test(process.argv[1] ?? '')) {
  const { AsyncResource, createHook, executionAsyncId } = asyncHooks
  const running = new AsyncLocalStorage()
  let noteTest = () => undefined

  // The runner's class of tests extends this class.
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
  // The runner reads the replacements while it loads. Afterwards, all other modules get Node's originals.
  await import('node:test')
  Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId })
  syncBuiltinESMExports()
}
