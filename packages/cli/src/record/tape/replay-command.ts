/**
 * Runs an agent whose requests a tape answers: a command, or the calling process. The agent gets only environment
 * variables.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { redirected } from '@tacho/guards/wire/clients.ts'
import type { RunEvent } from './recorded-steps.ts'
import { ReplayHost, type HostOptions, type ReplayResult } from './host.ts'
import { firstInput, type Tape } from './tape.ts'

export interface CommandReplay extends ReplayResult {
  /** Exit code of the command; null if a signal ended it. */
  code: number | null
  milliseconds: number
  /** Whether the program has no recording SDK. Then only its model requests were compared. */
  isSilent: boolean
}

export interface EndedCommand extends CommandReplay {
  /** The replay exceeded its time limit. */
  isTimedOut: boolean
  /** Whether the caller's signal ended it. */
  isStopped: boolean
  /** The end of standard error, if captured. */
  stderr: string
}

export interface CommandOptions extends HostOptions {
  /** Time limit of the command. Also ends a command that continues after it left the tape. */
  timeoutMs: number
  /**
   * stderr: standard output is redirected there, because the report needs it. tail: captures only the end of standard
   * error.
   */
  output: 'inherit' | 'stderr' | 'ignore' | 'tail'
  /** Ends the command when it aborts. */
  signal?: AbortSignal
  /** Requests to live models go through the host too. */
  asksThroughHost?: boolean
}

/** How long an agent may continue after it left the tape: a framework may go on with the error for a while. */
const DEPARTED_MS = 5_000
const KILL_MS = 5_000
/** Maximum size of the user's message. Linux limits a variable to 128 KiB. */
const INPUT_BYTES = 100_000
const TAIL_CHARS = 2_000
const KEYS = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY']

export async function replayCommand(
  tape: Tape,
  [program = '', ...args]: readonly string[],
  options: CommandOptions,
): Promise<EndedCommand> {
  return withHost(tape, options, async (host, variables) => {
    const end = await ended(program, args, { ...process.env, ...variables }, host, options)
    return { ...host.result(end.code === 0 ? 'COMPLETED' : 'FAILED'), ...end }
  })
}

/**
 * Serves a tape to an agent in the parent process: the `replay` of the SDKs.
 *
 *   first line of stdout      the variables for the agent, and the user's first message
 *   a line of stdin           the agent has ended: COMPLETED, or FAILED if it threw
 *   second line of stdout     what came of it
 *
 * If stdin ends without a line, the process has ended, and no verdict is written.
 * @returns undefined if the process that asked has ended.
 */
export async function serveReplay(tape: Tape, options: HostOptions): Promise<CommandReplay | undefined> {
  let hasEnded = false
  const result = await withHost(tape, options, async (host, variables) => {
    try {
      const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
      process.stdout.write(`${JSON.stringify({ variables, input: firstInput(tape) ?? null })}\n`)
      const line = await lines.next()
      hasEnded = line.done === true
      if (!hasEnded) await host.settled()
      return { ...host.result(line.value === 'FAILED' ? 'FAILED' : 'COMPLETED'), code: null }
    } finally {
      process.stdin.destroy()
    }
  })
  return hasEnded ? undefined : result
}

/** Opens the host of a tape while `act` runs. `act` gets the variables for the agent. */
async function withHost<Result extends ReplayResult>(
  tape: Tape,
  options: HostOptions & Pick<CommandOptions, 'asksThroughHost'>,
  act: (host: ReplayHost, variables: Readonly<Record<string, string>>) => Promise<Result>,
): Promise<Result & { milliseconds: number; isSilent: boolean }> {
  const upstreams = new Map<string, URL>()
  const host = new ReplayHost(tape, { ...options, upstreams })
  const origin = await host.start()
  const { variables: models, routes } = redirected(origin, process.env)
  for (const [route, url] of routes) upstreams.set(route, url)
  const begun = Date.now()
  try {
    const result = await act(host, replayVariables(tape, origin, options, models))
    return { ...result, milliseconds: Date.now() - begun, isSilent: result.events.length === 0 }
  } finally {
    await host.close()
  }
}

/** Switches off other recorders: they would report the tape's answers as real events. */
const NO_TELEMETRY = {
  OTEL_SDK_DISABLED: 'true',
  OTEL_TRACES_EXPORTER: 'none',
  OTEL_METRICS_EXPORTER: 'none',
  OTEL_LOGS_EXPORTER: 'none',
  LANGSMITH_TRACING: 'false',
  LANGSMITH_TRACING_V2: 'false',
  LANGCHAIN_TRACING_V2: 'false',
  LANGFUSE_TRACING_ENABLED: 'false',
}
/** Addresses for exporters that an agent creates itself. */
const TELEMETRY_ADDRESSES = ['', 'TRACES_', 'METRICS_', 'LOGS_'].map((name) => `OTEL_EXPORTER_OTLP_${name}ENDPOINT`)

/** The environment of an agent in a replay. It contains everything that the agent gets of the tape. */
function replayVariables(
  tape: Tape,
  origin: string,
  { mode, from, asksThroughHost = false }: Pick<CommandOptions, 'mode' | 'from' | 'asksThroughHost'>,
  models: Readonly<Record<string, string>>,
): Record<string, string> {
  const input = firstInput(tape)
  const inputs = tape.steps.flatMap((step) =>
    step.kind === 'input' && typeof step.text === 'string' ? [step.text] : [],
  )
  const allInputs = JSON.stringify(inputs)
  return {
    ...NO_TELEMETRY,
    ...Object.fromEntries(TELEMETRY_ADDRESSES.map((name) => [name, `${origin}/telemetry`])),
    TACHO_REPLAY: origin,
    TACHO_URL: origin,
    TACHO_API_KEY: 'replay',
    ...(typeof input === 'string' && { TACHO_REPLAY_INPUT: variableOf(input) }),
    ...(inputs.length > 1 && Buffer.byteLength(allInputs) <= INPUT_BYTES && { TACHO_REPLAY_INPUTS: allInputs }),
    ...((mode === 'strict' || from !== undefined || asksThroughHost) && models),
    // Clients do not start without a key, but the tape needs none.
    ...(mode === 'strict' && from === undefined && Object.fromEntries(KEYS.map((name) => [name, 'tape']))),
  }
}

/** Removes NUL characters, which a variable cannot contain, and half a character at the end. */
function variableOf(text: string): string {
  const bytes = Buffer.from(text.replaceAll('\0', '')).subarray(0, INPUT_BYTES)
  return new TextDecoder().decode(bytes, { stream: true })
}

async function ended(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  host: ReplayHost,
  { output, timeoutMs, signal }: CommandOptions,
): Promise<Pick<EndedCommand, 'code' | 'isTimedOut' | 'isStopped' | 'stderr'>> {
  const isQuiet = output === 'ignore' || output === 'tail'
  const stdout = output === 'stderr' ? 2 : isQuiet ? 'ignore' : output
  const stderrTo = output === 'tail' ? 'pipe' : isQuiet ? 'ignore' : 2
  const child = spawn(program, args, { env, stdio: [isQuiet ? 'ignore' : 'inherit', stdout, stderrTo] })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = `${stderr}${text}`.slice(-TAIL_CHARS)))
  const timers: NodeJS.Timeout[] = []
  let [isTimedOut, isStopped] = [false, false]
  const stop = () => {
    child.kill('SIGTERM')
    timers.push(setTimeout(() => child.kill('SIGKILL'), KILL_MS))
  }
  const onAbort = () => {
    isStopped = true
    stop()
  }
  const onTimeout = () => {
    isTimedOut = true
    stop()
  }
  timers.push(setTimeout(onTimeout, timeoutMs))
  void host.departed.then(() => timers.push(setTimeout(stop, DEPARTED_MS)))
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort)
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => resolve({ code, isTimedOut, isStopped, stderr }))
    })
  } finally {
    signal?.removeEventListener('abort', onAbort)
    for (const timer of timers) clearTimeout(timer)
  }
}

/** Events for a separate environment, with the id of the run that they replay. */
export function linkedEvents(
  events: readonly RunEvent[],
  original: string,
  more: Readonly<Record<string, string>> = {},
): RunEvent[] {
  return events.map((event) => {
    const { payload } = event
    const runMetadata = { ...(payload['runMetadata'] as object | undefined), replayOf: original, ...more }
    const runTags = [...((payload['runTags'] as unknown[] | undefined) ?? []), 'replay']
    // In the same environment, an unchanged id would mean the original run.
    const runId = (event as { runId?: string }).runId === original ? { runId: `replay-${original}` } : {}
    return { ...event, ...runId, payload: { ...payload, runMetadata, runTags } }
  })
}
