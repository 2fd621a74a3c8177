/**
 * In a replay, a tape answers guarded tools. `tacho replay` sets TACHO_REPLAY to the address of the tape; then nothing that a
 * guard stands before runs unless the answer says so.
 */
import type { Core } from '../core.ts'
import { readSafely } from '../recording/json.ts'
import { ToolBlockedError } from './blocked.ts'
import type { TakenCall } from './input.ts'

/** A recorded output is part of a payload, whose characters may all be escaped. */
const ANSWER_BYTES = 4_194_304
const ANSWER_MS = 30_000

interface Answer {
  answer?: 'returned' | 'failed' | 'run' | 'stop'
  output?: unknown
  error?: RecordedError | string
  message?: string
}

interface RecordedError {
  name?: string | undefined
  message?: string | undefined
  code?: unknown
}

export function isReplay(): boolean {
  type Host = { process?: { env?: Record<string, string | undefined> } }
  return readSafely(() => (globalThis as Host).process?.env?.['TACHO_REPLAY'], undefined) !== undefined
}

/** @throws the recorded error, or an error that says where the agent left the tape. */
export async function tapedCall<T>(
  core: Core,
  { toolName: tool, input: { recorded: input } }: TakenCall,
  agent: string | undefined,
  run: () => T,
): Promise<Awaited<T>> {
  const { answer, output, error, message } = await answerOf(core, { tool, input, agent })
  if (answer === 'run') return await run()
  if (answer === 'returned') return output as Awaited<T>
  if (answer === 'failed') throw recordedError(error)
  throw new Error(message ?? `${tool} was not run: the tape of this replay gave no answer.`)
}

/** For a tool that another program runs: a tape cannot answer it. @throws ToolBlockedError unless it may run in this replay. */
export async function refuseElsewhere(core: Core, { toolName, input: { recorded: input } }: TakenCall): Promise<void> {
  const { answer } = await answerOf(core, { tool: toolName, input })
  if (answer === 'run') return
  const none = { inputHash: null, policyIds: [], approvalId: null, decisionReason: null, policyMessage: null }
  const reason = 'a replay runs no tools of other programs'
  throw new ToolBlockedError(
    { code: 'guard_failed', toolName, reason, ...none },
    `The tool ${toolName} was not run: ${reason}.`,
  )
}

async function answerOf(
  core: Core,
  asked: { tool: string; input: unknown; agent?: string | undefined },
): Promise<Answer> {
  const options = { body: JSON.stringify(asked), timeoutMs: ANSWER_MS, maxReplyBytes: ANSWER_BYTES }
  const reply = await core.request('POST', '/replay/tool-calls', options)
  return ((reply.kind === 'reply' && reply.ok && reply.json) || {}) as Answer
}

function recordedError(errorRecord: RecordedError | string | undefined): Error {
  // An error may be recorded as its text.
  const { name = 'Error', message, code } = typeof errorRecord === 'object' ? errorRecord : { message: errorRecord }
  return Object.assign(new Error(message), { name }, code !== undefined && { code })
}
