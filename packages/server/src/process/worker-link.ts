import cluster, { type Worker } from 'node:cluster'
import type { MetricObject, Registry } from 'prom-client'

export type FromWorker =
  | { tacho: 'print'; text: string }
  | { tacho: 'ready' }
  | { tacho: 'measured'; metrics: MetricObject[] }
  | { tacho: 'gather'; id: number }

type ToWorker = { tacho: 'measure' } | { tacho: 'gathered'; id: number; text: string }

export type WorkerLink = NonNullable<ReturnType<typeof workerLink>>

export function workerLink() {
  const { worker } = cluster
  if (worker === undefined) return null
  const waiting = new Map<number, (text: string) => void>()
  let lastId = 0
  let registry: Registry | null = null
  // If the parent has ended, this process ends too.
  const send = (message: FromWorker) => void worker.send(message, () => undefined)

  worker.on('message', (message: ToWorker) => {
    if (message.tacho === 'measure') {
      void registry?.getMetricsAsJSON().then((metrics) => send({ tacho: 'measured', metrics }))
    } else if (message.tacho === 'gathered') {
      waiting.get(message.id)?.(message.text)
      waiting.delete(message.id)
    }
  })
  return {
    worker: worker.id,
    print: (text: string) => send({ tacho: 'print', text }),
    ready: () => send({ tacho: 'ready' }),
    measure: (ownRegistry: Registry) => (registry = ownRegistry),
    gather() {
      const id = ++lastId
      send({ tacho: 'gather', id })
      return new Promise<string>((resolve) => waiting.set(id, resolve))
    },
  }
}

/** A scrape reaches a random worker, whose counters alone would jump. Those of ended workers stay: sums never fall. */

/** A slow worker reports its previous values. */
const ANSWER_MS = 1_000

export function createWorkerMetrics() {
  const latest = new Map<number, MetricObject[]>()
  let past: MetricObject[] = []
  let asked: { missing: Set<number>; done: () => void } | null = null
  let gathering: Promise<string> | null = null

  async function gather(workers: readonly Worker[]): Promise<string> {
    await ask(workers)
    return (await aggregated([past, ...latest.values()])).metrics()
  }

  async function ask(workers: readonly Worker[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const connected = workers.filter((worker) => worker.isConnected())
    asked = { missing: new Set(connected.map(({ id }) => id)), done: resolve }
    for (const worker of connected) worker.send({ tacho: 'measure' } satisfies ToWorker)
    const timer = setTimeout(resolve, ANSWER_MS)
    await promise
    clearTimeout(timer)
    asked = null
  }

  function answered(worker: number): void {
    asked?.missing.delete(worker)
    if (asked?.missing.size === 0) asked.done()
  }

  return {
    gather: (workers: readonly Worker[]) => (gathering ??= gather(workers).finally(() => (gathering = null))),
    measured(worker: number, metrics: MetricObject[]): void {
      latest.set(worker, metrics)
      answered(worker)
    },
    departed(worker: number): void {
      const counts = latest.get(worker)?.filter(({ type }) => isCount(type)) ?? []
      latest.delete(worker)
      answered(worker)
      void keep(counts)
    },
  }

  async function keep(counts: MetricObject[]): Promise<void> {
    if (counts.length > 0) past = await (await aggregated([past, counts])).getMetricsAsJSON()
  }
}

async function aggregated(metrics: MetricObject[][]) {
  return (await import('prom-client')).default.AggregatorRegistry.aggregate(metrics)
}

/** Counters of an ended worker still count; its gauges say nothing. */
function isCount(type: unknown): boolean {
  return type === 'counter' || type === 'histogram'
}
