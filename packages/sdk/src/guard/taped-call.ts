/**
 * In a replay, a tape answers guarded tools. `tacho replay` sets TACHO_REPLAY to the address of the process that has
 * the tape and its cursor. A guarded tool runs only if the answer of that process says so.
 */
import { environment, type Core } from '../core.ts'
import { timers } from '../delivery/runtime.ts'
import { LIMITS } from '../limits.ts'
import type { TakenCall } from './input.ts'

/** A replay host's answer to one call. `stop`: `message` describes where the agent left the tape. */
interface Answer {
  answer?: 'returned' | 'failed' | 'run' | 'stop'
  output?: unknown
  /** A tape may contain an error as its text only. */
  error?: { name?: string; message?: string; code?: unknown } | string
  message?: string
  step?: number
  /** Answers for the next calls, if the agent continues as recorded. */
  ahead?: AheadAnswer[]
}

type AheadAnswer = Answer & { step: number; inputHash: string; agent?: string }

interface TapedCore extends Core {
  ahead?: {
    readonly client: string
    left: AheadAnswer[]
    /** The step of the last answer that was used; at first, that of the answer that brought these. */
    used: number
    /** Calls that asked. After parallel calls it stays above one, and no answer is used in advance: two calls could use it. */
    asking: number
  }
}

const WAITING_BATCHES = 8

const tape = () => environment()['TACHO_REPLAY']

/**
 * Whether a replay prevents tools from running. Also true for a client that was made before the replay, or is used
 * after it: that client does not ask this tape.
 */
export const isTaped = ({ settings }: Core): boolean => (settings.replay ?? tape()) !== undefined

/**
 * @param run absent: another program runs the tool, so a tape cannot answer in its place.
 * @throws the recorded error, or an error that says where the agent left the tape.
 */
export async function tapedCall<T>(
  core: TapedCore,
  { toolName, input: { recorded: input } }: TakenCall,
  inputHash?: string | null,
  agent?: string,
  run?: () => T,
): Promise<Awaited<T>> {
  if (core.settings.replay !== tape()) throw new Error(`${toolName} was not run: make its client in the replay.`)
  const { requestTimeoutMs: timeoutMs } = core.settings
  const { queued, queuedBytes } = core.sender.held
  // Calls that never wait would fill the queue, so yield to let it be sent. If still more events are queued, flush.
  if (queued > WAITING_BATCHES * LIMITS.batchEvents || queuedBytes > LIMITS.batchBytes)
    await core.sender.flush(timeoutMs)
  else if (queued > LIMITS.batchEvents)
    await new Promise<void>((resolve) => (timers.setImmediate ?? core.runtime.soon)(resolve))
  const ahead = (core.ahead ??= { client: core.ids.uuid(), left: [], used: 0, asking: 0 })
  const { client, used } = ahead
  const next = ahead.left.shift()
  let reply: Answer | undefined = next
  if (next && next.inputHash === inputHash && next.agent === agent) ahead.used = next.step
  else {
    ahead.left = []
    ahead.asking++
    const body = JSON.stringify({ toolName, input, agent, client, used })
    reply = ((await core.request('POST', '/replay/tool-calls', { body, timeoutMs })) as { json?: Answer }).json
    if (ahead.asking === 1) core.ahead = { client, left: reply?.ahead ?? [], used: reply?.step ?? 0, asking: 0 }
  }
  // If there was no reply, all fields are undefined.
  const { answer, output, error, message } = reply ?? {}
  if (answer === 'run') return (await (run as (() => Promise<Awaited<T>>) | undefined)?.()) as Awaited<T>
  if (run && answer === 'returned') return output as Awaited<T>
  if (run && answer === 'failed') {
    const { name = 'Error', code, message: said } = typeof error === 'object' ? error : { message: error }
    throw Object.assign(new Error(said), { name, code })
  }
  throw new Error(message ?? `${toolName} was not run.`)
}
