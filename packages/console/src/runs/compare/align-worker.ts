/** Aligns long runs in a worker, and reports its progress. */
import { align, type AlignedStep, type Alignment } from './align.ts'

export interface AlignRequest {
  a: AlignedStep[]
  b: AlignedStep[]
}

export type AlignReply = { part: number } | { alignment: Alignment }

const TOLD_MS = 100

self.addEventListener('message', ({ data: { a, b } }: MessageEvent<AlignRequest>) => {
  let reportedShare = 0
  const reply = (message: AlignReply) => self.postMessage(message)
  const alignment = align(a, b, (doneShare) => {
    const now = performance.now()
    if (now - reportedShare < TOLD_MS) return
    reportedShare = now
    reply({ part: doneShare })
  })
  reply({ alignment })
})
