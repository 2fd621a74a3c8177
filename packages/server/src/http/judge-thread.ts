import { parentPort } from 'node:worker_threads'
import { collectWhenIdle } from '../threads/collect-when-idle.ts'
import { performTask, type JudgeAnswer, type JudgeTask } from './judge.ts'

collectWhenIdle()

// If the thread ends, judge.ts must know at which task.
let last = Promise.resolve()

parentPort?.on('message', ({ id, ...task }: JudgeTask) => {
  // A rejection ends the thread, as a throw would.
  last = last.then(async () => {
    const judged = await performTask(task)
    parentPort?.postMessage({ id, judged } satisfies JudgeAnswer)
  })
})
