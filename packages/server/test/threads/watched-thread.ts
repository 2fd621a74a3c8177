/** A thread that is busy for five looks and then idle. It reports each of its collections, and what happened before. */
import { getHeapStatistics } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import { collectWhenIdle } from '../../src/threads/threads.ts'

/** A hundredth of it is more than a look takes on a slow machine. */
const LOOK_MS = 200
let collections = 0
const report = (after: string) =>
  parentPort?.postMessage({ after, at: performance.now(), collections, heap: getHeapStatistics().total_heap_size })

function onCollected(): void {
  collections++
  report('a collection')
}

/** Makes 40 MB of garbage. */
const allocate = (): unknown[] => Array.from({ length: 100 }, (_, at) => Array.from({ length: 50_000 }, () => at))

function work(until: number): void {
  const pauseAt = performance.now() + LOOK_MS / 10
  while (performance.now() < pauseAt);
  if (pauseAt < until) return void setImmediate(work, until)
  report('work')
}

parentPort?.on('message', () => void allocate())
allocate()
collectWhenIdle({ lookMs: LOOK_MS, quiet: { start: 1, later: 5 }, onCollected })
work(performance.now() + 5 * LOOK_MS)
