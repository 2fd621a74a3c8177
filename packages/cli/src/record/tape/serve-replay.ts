/**
 * A tape for an agent in the process that started this one: the `replay` of the SDKs.
 *
 *   first line of stdout      the variables for the agent, and the user's first message
 *   a line of stdin           the agent has ended: COMPLETED, or FAILED if it threw
 *   second line of stdout     what came of it
 *
 * The end of stdin without a line means that the process ended: nobody reads a verdict.
 */
import { createInterface } from 'node:readline'
import { ReplayHost } from './host.ts'
import { replayVariables, upstreamsOf, type CommandReplay, type CommandOptions } from './replay-command.ts'
import { firstInput, type Tape } from './tape.ts'

/** @returns undefined if the process that asked has ended. */
export async function serveReplay(
  tape: Tape,
  options: Omit<CommandOptions, 'output' | 'timeoutMs'>,
): Promise<CommandReplay | undefined> {
  const upstreams = new Map<string, URL>()
  const host = new ReplayHost(tape, { ...options, upstreams })
  const origin = await host.start()
  const models = upstreamsOf(origin, upstreams)
  const begun = Date.now()
  try {
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    const variables = replayVariables(tape, origin, options, models)
    process.stdout.write(`${JSON.stringify({ variables, input: firstInput(tape) ?? null })}\n`)
    const line = await lines.next()
    if (line.done) return undefined
    await host.settled()
    const result = host.result(line.value === 'FAILED' ? 'FAILED' : 'COMPLETED')
    return { ...result, code: null, milliseconds: Date.now() - begun, isSilent: result.events.length === 0 }
  } finally {
    process.stdin.destroy()
    await host.close()
  }
}
