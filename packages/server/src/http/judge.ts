/** Judges batches: small ones at once, large ones on a thread, for parsing 1 MiB of JSON can hold up this one for 30 ms. */
import { Worker } from 'node:worker_threads'
import { myTurn } from './turns.ts'
import { judgeBatch, type JudgeContext, type Judgement } from '../domain/event.ts'

/** Up to here even the costliest JSON parses within a few milliseconds. */
const DIRECT_BYTES = 128 * 1024

export interface Judge {
  judge(body: Buffer, context: JudgeContext): Promise<Judgement>
  close(): Promise<void>
}

/** What crosses to the thread and back. */
export interface JudgeTask {
  id: number
  body: Uint8Array
  context: JudgeContext
}
export interface JudgeAnswer {
  id: number
  judgement: Judgement
}

interface Waiting {
  resolve: (judgement: Judgement) => void
  reject: (error: Error) => void
}

export function createJudge(directBytes: number = DIRECT_BYTES): Judge {
  const waiting = new Map<number, Waiting>()
  let thread: Worker | null = null
  let lastId = 0

  // Started with the first large body, so that an installation without any does not pay for it.
  function start(): Worker {
    const started = new Worker(new URL('./judge-thread.ts', import.meta.url))
    started.unref()
    started.on('message', ({ id, judgement }: JudgeAnswer) => {
      waiting.get(id)?.resolve(judgement)
      waiting.delete(id)
    })
    started.once('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    started.once('exit', () => end(new Error('the judging thread has ended')))
    return started
  }

  function end(error: Error): void {
    thread = null
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }

  return {
    async judge(body, context) {
      if (body.length <= directBytes) {
        await myTurn()
        return judgeBatch(body.toString(), context)
      }
      thread ??= start()
      const id = ++lastId
      thread.postMessage({ id, body, context } satisfies JudgeTask)
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
    },
    async close() {
      await thread?.terminate()
    },
  }
}
