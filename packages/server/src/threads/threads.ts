import { parentPort, Worker, type Transferable, type WorkerOptions } from 'node:worker_threads'
import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

interface Message<Task> {
  /** Null: the caller does not wait for an answer. */
  id: number | null
  task: Task
}
type Answer<Result> = { id: number; result: Result } | { id: number; error: Error }

interface CalledThread<Task, Result> {
  call(task: Task): Promise<Result>
  tell(task: Task): void
  close(): Promise<void>
}

export function startCalledThread<Task, Result>(
  url: URL,
  { name, ...options }: WorkerOptions & { name: string },
  onEnd: () => void = () => undefined,
): CalledThread<Task, Result> {
  const worker = new Worker(url, { ...options, name: `tacho-${name}` })
  const calls = new PendingCalls<Result>()
  let ended: Error | null = null
  worker.unref()
  worker.on('message', (answer: Answer<Result>) => {
    if ('error' in answer) calls.reject(answer.id, answer.error)
    else calls.resolve(answer.id, answer.result)
  })
  worker.once('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
  worker.once('exit', (code) => end(new Error(`the ${name} thread ended with code ${code}`)))

  function end(error: Error): void {
    if (ended !== null) return
    ended = error
    calls.rejectAll(error)
    onEnd()
  }

  return {
    async call(task) {
      if (ended !== null) throw ended
      return calls.start((id) => worker.postMessage({ id, task } satisfies Message<Task>))
    },
    tell: (task) => worker.postMessage({ id: null, task } satisfies Message<Task>),
    async close() {
      await worker.terminate()
    },
  }
}

export function createSharedThread<Task, Result>(
  start: (onEnd: () => void) => CalledThread<Task, Result>,
  idleMs: number,
) {
  let [thread, users]: [CalledThread<Task, Result> | null, number] = [null, 0]
  let idle: NodeJS.Timeout | undefined

  async function close(): Promise<void> {
    clearTimeout(idle)
    const ending = thread
    thread = null
    await ending?.close()
  }

  return {
    enter(): CalledThread<Task, Result> {
      clearTimeout(idle)
      users++
      if (thread !== null) return thread
      const started = start(() => {
        if (thread === started) thread = null
      })
      return (thread = started)
    },
    leave(): void {
      if (--users === 0) idle = setTimeout(() => void close(), idleMs).unref()
    },
    close,
  }
}

/** In the thread. An error of `perform` is the answer, and later calls go on. */
export function answerCalls<Task, Result>(
  perform: (task: Task) => Result,
  transferOf: (result: Result) => readonly Transferable[] = () => [],
): void {
  parentPort?.on('message', ({ id, task }: Message<Task>) => {
    try {
      const result = perform(task)
      if (id !== null) parentPort?.postMessage({ id, result } satisfies Answer<Result>, [...transferOf(result)])
    } catch (error) {
      if (id === null) throw error
      parentPort?.postMessage({ id, error: error as Error } satisfies Answer<Result>)
    }
  })
}

export class PendingCalls<Result> {
  readonly #waiting = new Map<number, PromiseWithResolvers<Result>>()
  #lastId = 0

  get size(): number {
    return this.#waiting.size
  }

  start(send: (id: number) => void): Promise<Result> {
    const id = ++this.#lastId
    send(id)
    const call = Promise.withResolvers<Result>()
    this.#waiting.set(id, call)
    return call.promise
  }

  resolve(id: number, result: Result): void {
    this.#waiting.get(id)?.resolve(result)
    this.#waiting.delete(id)
  }

  reject(id: number, error: Error): void {
    this.#waiting.get(id)?.reject(error)
    this.#waiting.delete(id)
  }

  rejectAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

/**
 * V8 collects garbage when code allocates, and an idle thread does not: a third of its heap would stay garbage.
 *
 *   used --idle for a while, and the heap has grown--> collected --the heap grows--> used
 */

/** Blocks the thread for 10 to 130 ms, on a busy machine too. A regular collection would keep the free pages for later. */
type Collect = (options: { type: 'major'; flavor: 'last-resort'; execution: 'async' }) => Promise<void>

const LOOK_MS = 5_000
/** Looks in a row that find the thread idle. */
const QUIET_LOOKS = { start: 1, later: 12 }
/** A collection discards compiled code too, which costs the first seconds of load after it. So it comes early only before load begins. */
const START_LOOKS = 2
/** Background jobs, which look for work every second, take a third of it. */
const IDLE_SHARE = 0.01
const GROWN_BYTES = 6 * 1_048_576

export function collectWhenIdle({ lookMs = LOOK_MS, quiet = QUIET_LOOKS, onCollected = () => {} } = {}): void {
  let keptPoints = 0
  let looks = 0
  let quietLooks = 0
  let seen = performance.eventLoopUtilization()

  async function collectAll(): Promise<void> {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, seen)
    seen = now
    quietLooks = utilization < IDLE_SHARE ? quietLooks + 1 : 0
    if (quietLooks < (++looks <= START_LOOKS ? quiet.start : quiet.later)) return
    if (getHeapStatistics().total_heap_size < keptPoints + GROWN_BYTES) return
    await collector()({ type: 'major', flavor: 'last-resort', execution: 'async' })
    keptPoints = getHeapStatistics().total_heap_size
    quietLooks = 0
    onCollected()
  }

  setInterval(() => void collectAll(), lookMs).unref()
}

/** From a context made while the flag is on. With the flag from the start on, V8 compiles Node's own code again in each process: 60 ms. */
function collector(): Collect {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  // Otherwise V8 would refuse code that was compiled without the flag.
  setFlagsFromString('--no-expose-gc')
  return collect
}
