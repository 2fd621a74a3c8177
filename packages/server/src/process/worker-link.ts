import cluster from 'node:cluster'
import type { MetricObject, Registry } from 'prom-client'

export type FromWorker =
  | { tacho: 'print'; text: string }
  | { tacho: 'ready' }
  | { tacho: 'measured'; metrics: MetricObject[] }
  | { tacho: 'gather'; id: number }

export type ToWorker = { tacho: 'measure' } | { tacho: 'gathered'; id: number; text: string }

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
    measure: (own: Registry) => (registry = own),
    gather() {
      const id = ++lastId
      send({ tacho: 'gather', id })
      return new Promise<string>((resolve) => waiting.set(id, resolve))
    },
  }
}
