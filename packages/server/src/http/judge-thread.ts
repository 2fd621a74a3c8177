/** The worker thread of judge.ts. */
import { parentPort } from 'node:worker_threads'
import { collectWhenIdle } from '../threads/collect-when-idle.ts'
import { performTask, type JudgeAnswer, type JudgeTask } from './judge.ts'

collectWhenIdle()

parentPort?.on('message', ({ id, ...task }: JudgeTask) => {
  // A rejection ends the thread, as a throw would: the callers get an error, and the next body a new thread.
  void performTask(task).then((judged) => parentPort?.postMessage({ id, judged } satisfies JudgeAnswer))
})
