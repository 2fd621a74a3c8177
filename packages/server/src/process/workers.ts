/**
 * The parent of several workers. They share its port; the parent only supervises them.
 *
 *   starting --first worker is ready--> serving --signal--> draining --all workers have ended--> (end)
 *      '--it ends earlier: the parent ends too, because every worker would fail the same way--> (end)
 *
 * Workers accept connections from the port themselves: a connection handed over by the parent would hang if the worker
 * died first. A worker that dies while serving is replaced after a pause, which doubles while workers die young. After
 * QUICK_DEATHS young deaths in a row, the parent stops with an error. A second signal ends everything immediately, and so
 * does the time after which each worker should have ended by itself.
 */
import cluster, { type Worker } from 'node:cluster'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { createLog } from './log.ts'
import { CLOSE_MS, nextSignal } from './stopping.ts'
import type { MetricObject, Registry } from 'prom-client'

/**
 * A worker that ends within this time after it was ready counts as a quick death. If it never was ready, the time begins at its
 * start. Shorter than a new worker's wait for an unreachable database.
 */
const YOUNG_MS = 8_000
const QUICK_DEATHS = 5
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

export async function runWorkers({ workers: count, logLevel, drainDelay, drainTimeout }: Config): Promise<void> {
  const { logger, leave } = createLog(logLevel)
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const printed = new Set<string>()
  const metrics = createWorkerMetrics()
  const idle = Promise.withResolvers<void>()
  let isStopping = false
  let youngDeaths = 0

  const endNow = (code: number): void => {
    for (const worker of workers()) worker.process.kill('SIGKILL')
    void leave(code)
  }
  const signalled = nextSignal(endNow)

  function start(): Promise<number | null> {
    const worker = cluster.fork()
    let startedAt = performance.now()
    const { promise, resolve } = Promise.withResolvers<number | null>()
    worker.on('message', (message: FromWorker) => {
      if (message.tacho === 'ready') {
        startedAt = performance.now()
        resolve(null)
      }
      if (message.tacho === 'print') print(message.text)
      if (message.tacho === 'measured') metrics.measured(worker.id, message.metrics)
      if (message.tacho === 'gather') void metrics.gather(workers()).then((text) => answer(worker, message.id, text))
    })
    worker.on('exit', (code, signal) => {
      metrics.departed(worker.id)
      resolve(code ?? 1)
      youngDeaths = performance.now() - startedAt < YOUNG_MS ? youngDeaths + 1 : 0
      if (isStopping) return workers().length === 0 ? idle.resolve() : undefined
      if (isServing) void replace(worker.id, signal ?? code)
    })
    return promise
  }

  /** All workers print the same address, so print it once. Only the first one has credentials below it. */
  function print(text: string): void {
    const [address = ''] = text.split('\n', 1)
    if (printed.has(address)) return
    printed.add(address)
    process.stdout.write(text)
  }

  async function replace(worker: number, end: string | number): Promise<void> {
    if (youngDeaths >= QUICK_DEATHS) return giveUp(end)
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** youngDeaths)
    logger.warn({ worker, end, pauseMs: pause }, 'a worker ended and will be replaced')
    await wait(pause)
    if (!isStopping) await start()
  }

  async function giveUp(end: string | number): Promise<void> {
    if (isStopping) return
    const text = `${QUICK_DEATHS} workers in a row ended within ${YOUNG_MS / 1000} s of their start; the last ended with ${end}`
    process.stderr.write(`tacho: ${text}. See their log lines for the reason.\n`)
    await stop('SIGTERM')
    await leave(1)
  }

  async function stop(signal: NodeJS.Signals): Promise<void> {
    isStopping = true
    setTimeout(endNow, drainDelay + drainTimeout + 2 * CLOSE_MS, 1)
    // In a process group, workers have already received the signal. Within a second, this counts as the same one.
    for (const worker of workers()) worker.process.kill(signal)
    if (workers().length > 0) await idle.promise
  }

  let isServing = false
  const first = await start()
  if (first !== null) await leave(first)
  isServing = true
  logger.info({ workers: count, pid: process.pid }, 'starting workers')
  for (let others = 1; others < count; others++) void start()
  const signal = await signalled
  logger.info({ signal }, 'draining')
  await stop(signal)
  logger.info('closed')
  await leave(0)
}

function workers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}

function answer(worker: Worker, id: number, text: string): void {
  if (worker.isConnected()) worker.send({ tacho: 'gathered', id, text })
}

/** Messages from a worker to its parent. */
type FromWorker =
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

/**
 * A scrape reaches one random worker, so each answers for all. Counters of ended workers stay, so that sums never fall.
 */

/** A slow worker reports its previous values. */
const ANSWER_MS = 1_000

function createWorkerMetrics() {
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

/** Counters of an ended worker still count; its gauges are dropped. */
function isCount(type: unknown): boolean {
  return type === 'counter' || type === 'histogram'
}
