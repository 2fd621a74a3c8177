/**
 * In a replay, a tape answers guarded tools. `tacho replay` sets TACHO_REPLAY to the address of the tape; then a
 * guarded tool runs only if the answer says so. The answer comes from another process, which has the cursor.
 */
import { environment, type Core } from '../core.ts'
import type { TakenCall } from './input.ts'

/** What the host of a replay answers for one call. `stop`: `message` says where the agent left the tape. */
interface Answer {
  answer?: 'returned' | 'failed' | 'run' | 'stop'
  output?: unknown
  /** May be recorded as its text. */
  error?: { name?: string; message?: string; code?: unknown } | string
  message?: string
}

const tape = () => environment()['TACHO_REPLAY']

/** Also for a client that a replay finds, or leaves behind: its tools do not run, because it does not ask this tape. */
export const isTaped = ({ settings }: Core): boolean => (settings.replay ?? tape()) !== undefined

/**
 * @param run absent: another program runs the tool, so a tape cannot answer in its place.
 * @throws the recorded error, or an error that says where the agent left the tape.
 */
export async function tapedCall<T>(
  core: Core,
  { toolName, input: { recorded: input } }: TakenCall,
  agent?: string,
  run?: () => T,
): Promise<Awaited<T>> {
  if (core.settings.replay !== tape()) throw new Error(`${toolName} was not run: make its client in the replay.`)
  const body = JSON.stringify({ toolName, input, agent })
  const timeoutMs = core.settings.requestTimeoutMs
  const reply = await core.request('POST', '/replay/tool-calls', { body, timeoutMs })
  // Without a reply, nothing is answered.
  const { answer, output, error, message } = (reply as { json?: Answer }).json ?? {}
  if (answer === 'run') return (await (run as (() => Promise<Awaited<T>>) | undefined)?.()) as Awaited<T>
  if (run && answer === 'returned') return output as Awaited<T>
  if (run && answer === 'failed') {
    const { name = 'Error', code, message: said } = typeof error === 'object' ? error : { message: error }
    throw Object.assign(new Error(said), { name, code })
  }
  throw new Error(message ?? `${toolName} was not run.`)
}
