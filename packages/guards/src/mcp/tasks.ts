/**
 * Calls that a server answered with a task: their result comes later, in the answer of tasks/get (2026-07-28) or tasks/result
 * (2025-11-25), or in a notification.
 *
 *   created --completed, with its result--> resolved
 *           \--failed, cancelled, the connection ends--> rejected
 */
import { isObject, keyOf, type Json, type Message } from './message.ts'
import { ToolFailure } from './tool-failure.ts'

const ASKED_MAX = 1_000

interface TaskCall {
  readonly toolName: string
  readonly toolCallId: string
  readonly input: Json
}

interface Task extends TaskCall {
  resolve(answer: Message): void
  reject(error: ToolFailure): void
}

export class Tasks {
  readonly #tasks = new Map<string, Task>()
  /** The client's requests about tasks, by the key of their request id. */
  readonly #asked = new Map<string, { taskId: string; isResult: boolean }>()

  /** The call that the task belongs to. */
  of(taskId: unknown): TaskCall | undefined {
    return typeof taskId === 'string' ? this.#tasks.get(taskId) : undefined
  }

  /** Resolves with the answer that has the task's result. Rejects with a ToolFailure. */
  async follow(taskId: string, call: TaskCall): Promise<Message> {
    this.#end(taskId, (task) => task.reject(new ToolFailure('task_replaced', 'Another call got the same task.')))
    return new Promise((resolve, reject) => this.#tasks.set(taskId, { ...call, resolve, reject }))
  }

  /** Notes a request of the client. */
  asked(key: string, method: unknown, params: unknown): void {
    if (typeof method !== 'string' || !method.startsWith('tasks/') || !isObject(params)) return
    const { taskId } = params
    if (typeof taskId !== 'string' || !this.#tasks.has(taskId)) return
    if (this.#asked.size >= ASKED_MAX) this.#asked.clear()
    this.#asked.set(key, { taskId, isResult: method === 'tasks/result' })
  }

  /** Notes a message of the server. */
  heard(message: Message): void {
    const { id, method, params, result, error } = message
    if (typeof method === 'string') {
      if (method.startsWith('notifications/tasks') && isObject(params)) this.#take(params['taskId'], params)
      return
    }
    const key = keyOf(id) ?? ''
    const asked = this.#asked.get(key)
    if (!asked) return
    this.#asked.delete(key)
    const { taskId, isResult } = asked
    if (isResult) this.#end(taskId, (task) => task.resolve({ result, error }))
    else if (isObject(result)) this.#take(taskId, result)
  }

  close(): void {
    const failure = new ToolFailure('connection_closed', "The connection ended before the task's result came.")
    for (const taskId of this.#tasks.keys()) this.#end(taskId, (task) => task.reject(failure))
  }

  #take(taskId: unknown, { status, result, error, statusMessage }: Json): void {
    if (typeof taskId !== 'string') return
    if (status === 'completed' && result !== undefined) this.#end(taskId, (task) => task.resolve({ result }))
    if (status === 'failed') {
      const message = typeof statusMessage === 'string' ? statusMessage : 'The task failed.'
      const taskResult = isObject(error) ? { error } : { error: { code: 'task_failed', message } }
      this.#end(taskId, (task) => task.resolve(taskResult))
    }
    if (status === 'cancelled') {
      this.#end(taskId, (task) => task.reject(new ToolFailure('cancelled', 'The task was cancelled.')))
    }
  }

  #end(taskId: string, end: (task: Task) => void): void {
    const task = this.#tasks.get(taskId)
    this.#tasks.delete(taskId)
    if (task) end(task)
  }
}

/** The id of the task, if a server answered a call with one; else null. */
export function taskIdOf({ result }: Message): string | null {
  if (!isObject(result)) return null
  const task = result['resultType'] === 'task' ? result : result['task']
  return isObject(task) && typeof task['taskId'] === 'string' ? task['taskId'] : null
}
