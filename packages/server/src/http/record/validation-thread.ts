import { parentPort } from 'node:worker_threads'
import { collectWhenIdle } from '../../threads/threads.ts'
import { buffersIn, performTask, type ValidationAnswer, type ValidationTask } from './body-validator.ts'

collectWhenIdle()

// Tasks run one after the other, so that body-validator.ts knows at which task the thread ended.
let last = Promise.resolve()

parentPort?.on('message', ({ id, ...task }: ValidationTask) => {
  // A rejection ends the thread, as a throw would.
  last = last.then(async () => {
    const validated = await performTask(task)
    parentPort?.postMessage({ id, validated } satisfies ValidationAnswer, buffersIn(validated))
  })
})
