/**
 * Answers of the client to questions of a running task (tasks/update): judged with the input of the task's call.
 *
 *   asked --ALLOW, WARN, a person approved--> forwarded
 *      \--BLOCK, rejected, too late; the client cancels or leaves--> an error
 */
import { ToolBlockedError, type Run, type Tacho } from '@tacho/sdk'
import type { Refusals } from '../refusals.ts'
import { inputOf, keyOf, NOT_A_CALL, type Json } from './message.ts'
import type { Tasks } from './tasks.ts'

interface AnswerParts {
  readonly tacho: Tacho
  readonly tasks: Tasks
  readonly refusals: Refusals
  readonly approvalTimeoutMs: number
  readonly claimsOf: (toolName: string) => {
    riskSignals: () => string[]
    annotations: Json | undefined
    server: string | undefined
  }
}

export class TaskAnswers {
  readonly #parts: AnswerParts
  readonly #waiting = new Map<string, AbortController>()

  constructor(parts: AnswerParts) {
    this.#parts = parts
  }

  /** The reason why the answers must not be forwarded; null if they may. */
  async refusalOf(run: Run, id: unknown, { taskId, inputResponses }: Json): Promise<string | null> {
    const { tacho, tasks, refusals, approvalTimeoutMs, claimsOf } = this.#parts
    const task = tasks.of(taskId)
    if (!task) return 'The guard does not know this task, so it cannot judge answers to its questions.'
    const input = inputOf({ arguments: task.input, inputResponses })
    if (input === null) return NOT_A_CALL
    const { toolName, toolCallId } = task
    const { riskSignals, annotations, server } = claimsOf(toolName)
    const call = { toolName, toolCallId, input, server, riskSignals: riskSignals(), annotations }
    const stop = new AbortController()
    const key = keyOf(id) ?? ''
    this.#waiting.set(key, stop)
    try {
      const { inputHash, approvalId } = await run.within(() =>
        tacho.authorize(call, { approvalTimeoutMs }, stop.signal),
      )
      run.step(`answers to ${toolName}`, { toolName, toolCallId, taskId, input, inputHash, approvalId })
      return null
    } catch (error) {
      if (!(error instanceof ToolBlockedError)) throw error
      refusals.add(toolName, input, error, tacho.configuration.state.current?.revision ?? null)
      return error.modelText
    } finally {
      this.#waiting.delete(key)
    }
  }

  /** Returns false if no request with this key waits for a person. */
  cancel(key: string): boolean {
    this.#waiting.get(key)?.abort('cancelled')
    return this.#waiting.has(key)
  }

  cancelAll(): void {
    for (const stop of this.#waiting.values()) stop.abort('cancelled')
  }
}
