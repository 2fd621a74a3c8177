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
import { createWorkerMetrics, type FromWorker } from './worker-link.ts'

/** After ready or, if it never was, the start. Shorter than a new worker's wait for an unreachable database. */
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

  /** All workers begin with the same address, so print it once; only the first one has credentials below it. */
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
    // In a process group, workers already have the signal; within a second it counts as the same one.
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
