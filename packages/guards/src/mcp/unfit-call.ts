/**
 * A call that cannot reach its tool: the server did not list the tool, or the arguments do not fit its schema. It is
 * judged and forwarded like any other call, because the list may be out of date. If the server answers with an error,
 * the tool did not run.
 */
import type { Run, Tacho } from '@tacho/sdk'
import type { Message } from './message.ts'
import { resultOf, ToolFailure } from './tool-failure.ts'

export type Misfit = 'unknown_tool' | 'unfit'

interface UnfitCall {
  readonly toolName: string
  readonly toolCallId: string
  readonly toolServer: string | undefined
  readonly input: Readonly<Record<string, unknown>>
  readonly misfit: Misfit
  readonly isCancelled: () => boolean
}

export async function recordUnfit(
  { tacho, run }: { tacho: Tacho; run: Run },
  { misfit, isCancelled, input, ...facts }: UnfitCall,
  forward: () => Promise<Message>,
): Promise<void> {
  const startedAt = Date.now()
  const add = (payload: object) => run.toolCall({ startedAt, ...facts, ...payload })
  let answer: Message | null = null
  try {
    answer = await forward()
    add({ input, outcome: 'returned', output: resultOf(answer) })
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error
    const { code, message } = error
    if (answer === null) return void add({ input, outcome: isCancelled() ? 'cancelled' : 'failed', error })
    const never = {
      outcome: 'never_ran',
      reasonCode: misfit,
      arguments: JSON.stringify(input),
      error: { code, message },
    }
    const eventId = add(never)
    const payload = { toolName: facts.toolName, reasonCode: misfit }
    run.within(() => tacho.reportIssue({ detectionType: 'TOOL_FAILED', payload, eventId }))
  }
}
