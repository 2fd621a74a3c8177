/** Validates small batches directly and large ones on a thread, because parsing 1 MiB of JSON can take 30 ms. */
import { Worker } from 'node:worker_threads'
import { waitForTurn } from './turns.ts'
import { moduleUrl } from '../threads/module-url.ts'
import { PendingCalls } from '../threads/pending-calls.ts'
import { judgeBatch, type JudgeContext, type Judgement } from '../domain/event.ts'

/** Up to this size, even the slowest JSON parses within a few milliseconds. */
const DIRECT_BYTES = 128 * 1024

export interface Judge {
  judge(body: Buffer, context: JudgeContext): Promise<Judgement>
  close(): Promise<void>
}

/** Messages to and from the thread. */
export interface JudgeTask {
  id: number
  body: Uint8Array
  context: JudgeContext
}
export interface JudgeAnswer {
  id: number
  judgement: Judgement
}

export function createJudge(directBytes: number = DIRECT_BYTES): Judge {
  const calls = new PendingCalls<Judgement>()
  let thread: Worker | null = null

  // Start the thread for the first large body: most installations never need it.
  function start(): Worker {
    const started = new Worker(moduleUrl('judge-thread', import.meta.url))
    started.unref()
    started.on('message', ({ id, judgement }: JudgeAnswer) => calls.resolve(id, judgement))
    started.once('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    started.once('exit', () => end(new Error('the validation thread ended')))
    return started
  }

  function end(error: Error): void {
    thread = null
    calls.rejectAll(error)
  }

  return {
    async judge(body, context) {
      if (body.length <= directBytes) {
        await waitForTurn()
        return judgeBatch(body.toString(), context)
      }
      const judging = (thread ??= start())
      return calls.start((id) => judging.postMessage({ id, body, context } satisfies JudgeTask))
    },
    async close() {
      await thread?.terminate()
    },
  }
}
