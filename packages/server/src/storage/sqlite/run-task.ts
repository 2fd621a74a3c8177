import { startThread } from './thread.ts'

const HEAP_MIB = 512

/** On a reader of its own, so that neither writes nor reads wait for it. */
export async function runTask(file: string, task: 'backup' | 'check', args: unknown[]): Promise<unknown> {
  const thread = await startThread({ name: 'reader', file, heapMib: HEAP_MIB, onDeath: () => undefined })
  try {
    return await thread.call(task, args)
  } finally {
    await thread.close()
  }
}
