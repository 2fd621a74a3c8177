import { parentPort } from 'node:worker_threads'
import { collectWhenIdle } from '../../threads/threads.ts'
import { buffersOf } from '../../domain/record/otlp/packed-telemetry.ts'
import { performTask, type ValidationAnswer, type ValidationTask } from './judge.ts'

collectWhenIdle()

// If the thread ends, judge.ts must know at which task.
let last = Promise.resolve()

parentPort?.on('message', ({ id, ...task }: ValidationTask) => {
  // A rejection ends the thread, as a throw would.
  last = last.then(async () => {
    const judged = await performTask(task)
    const moved = typeof judged === 'object' && 'itemOf' in judged ? buffersOf(judged) : []
    parentPort?.postMessage({ id, judged } satisfies ValidationAnswer, moved)
  })
})
