/** The worker thread of judge.ts. */
import { parentPort } from 'node:worker_threads'
import { judgeBatch } from '../domain/event.ts'
import type { JudgeAnswer, JudgeTask } from './judge.ts'

parentPort?.on('message', ({ id, body, context }: JudgeTask) => {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  parentPort?.postMessage({ id, judgement: judgeBatch(text, context) } satisfies JudgeAnswer)
})
