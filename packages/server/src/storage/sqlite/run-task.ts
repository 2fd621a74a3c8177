import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Task, TaskReply } from './maintenance.ts'
import { receivedError } from './messages.ts'
import { moduleUrl } from '../../program/module-url.ts'

export async function runTask(task: Task): Promise<string> {
  const worker = new Worker(moduleUrl('maintenance', import.meta.url), { name: `tacho-${task.task}`, workerData: task })
  try {
    const [reply] = (await once(worker, 'message')) as [TaskReply]
    if ('error' in reply) throw receivedError(reply.error)
    return reply.result
  } finally {
    await worker.terminate()
  }
}
