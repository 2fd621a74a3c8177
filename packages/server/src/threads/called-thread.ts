import { parentPort, Worker, type Transferable, type WorkerOptions } from 'node:worker_threads'
import { PendingCalls } from './pending-calls.ts'

interface Message<Task> {
  /** Null: the caller does not wait for an answer. */
  id: number | null
  task: Task
}
type Answer<Result> = { id: number; result: Result } | { id: number; error: Error }

export interface CalledThread<Task, Result> {
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
