/** Runs a command that a tape answers. The command gets nothing but variables. */
import { spawn } from 'node:child_process'
import { redirected } from '@tacho/guards/wire/clients.ts'
import type { RunEvent } from './recorded-steps.ts'
import { ReplayHost, type HostOptions, type ReplayResult } from './host.ts'
import { firstInput, type Tape } from './tape.ts'

export interface CommandReplay extends ReplayResult {
  /** Of the command; null if a signal ended it. */
  code: number | null
  milliseconds: number
  /** The program has no SDK that records: only what it asked of models was compared. */
  isSilent: boolean
}

export interface CommandOptions extends HostOptions {
  /** Ends the command that goes on after it left the tape, or that takes too long. */
  timeoutMs: number
  /** Its output goes to standard error, so that standard output is the report's. */
  output: 'inherit' | 'stderr' | 'ignore'
}

/** A framework may go on for a while with the error that it got. */
const DEPARTED_MS = 5_000
const KILL_MS = 5_000
/** Linux allows a variable 128 KiB. */
const INPUT_BYTES = 100_000
const KEYS = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY']

export async function replayCommand(
  tape: Tape,
  [program = '', ...args]: readonly string[],
  options: CommandOptions,
): Promise<CommandReplay> {
  const upstreams = new Map<string, URL>()
  const host = new ReplayHost(tape, { ...options, upstreams })
  const origin = await host.start()
  const models = upstreamsOf(origin, upstreams)
  const begun = Date.now()
  try {
    const tapeVariables = replayVariables(tape, origin, options, models)
    const { code } = await ended(program, args, { ...process.env, ...tapeVariables }, host, options)
    const result = host.result(code === 0 ? 'COMPLETED' : 'FAILED')
    return { ...result, code, milliseconds: Date.now() - begun, isSilent: result.events.length === 0 }
  } finally {
    await host.close()
  }
}

/** Fills `upstreams`, and returns the variables that lead models' clients to `origin`. */
export function upstreamsOf(origin: string, upstreams: Map<string, URL>): Readonly<Record<string, string>> {
  const { variables, routes } = redirected(origin, process.env)
  for (const [route, url] of routes) upstreams.set(route, url)
  return variables
}

/** Traces of other recorders would say that what the tape answered has happened. */
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
/** Exporters that an agent makes by itself read the addresses. */
const TELEMETRY_ADDRESSES = ['', 'TRACES_', 'METRICS_', 'LOGS_'].map((name) => `OTEL_EXPORTER_OTLP_${name}ENDPOINT`)

/** All that an agent gets of a tape. */
export function replayVariables(
  tape: Tape,
  origin: string,
  { mode, from }: Pick<CommandOptions, 'mode' | 'from'>,
  models: Readonly<Record<string, string>>,
): Record<string, string> {
  const input = firstInput(tape)
  return {
    ...NO_TELEMETRY,
    ...Object.fromEntries(TELEMETRY_ADDRESSES.map((name) => [name, `${origin}/telemetry`])),
    TACHO_REPLAY: origin,
    TACHO_URL: origin,
    TACHO_API_KEY: 'replay',
    ...(typeof input === 'string' && { TACHO_REPLAY_INPUT: variableOf(input) }),
    ...((mode === 'strict' || from !== undefined) && models),
    // A client does not start without a key; the tape needs none.
    ...(mode === 'strict' && from === undefined && Object.fromEntries(KEYS.map((name) => [name, 'tape']))),
  }
}

/** Without what no variable can hold, and without half a character at its end. */
function variableOf(text: string): string {
  const bytes = Buffer.from(text.replaceAll('\0', '')).subarray(0, INPUT_BYTES)
  return new TextDecoder().decode(bytes, { stream: true })
}

async function ended(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  host: ReplayHost,
  { output, timeoutMs }: CommandOptions,
): Promise<{ code: number | null }> {
  const stdout = output === 'stderr' ? 2 : output
  const child = spawn(program, args, {
    env,
    stdio: [output === 'ignore' ? 'ignore' : 'inherit', stdout, output === 'ignore' ? 'ignore' : 2],
  })
  const timers: NodeJS.Timeout[] = []
  const stop = () => {
    child.kill('SIGTERM')
    timers.push(setTimeout(() => child.kill('SIGKILL'), KILL_MS))
  }
  timers.push(setTimeout(stop, timeoutMs))
  void host.departed.then(() => timers.push(setTimeout(stop, DEPARTED_MS)))
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => resolve({ code }))
    })
  } finally {
    for (const timer of timers) clearTimeout(timer)
  }
}

/** For an environment of its own: the events say of which run they are a replay. */
export function linkedEvents(events: readonly RunEvent[], original: string): RunEvent[] {
  return events.map((event) => {
    const { payload } = event
    const runMetadata = { ...(payload['runMetadata'] as object | undefined), replayOf: original }
    const runTags = [...((payload['runTags'] as unknown[] | undefined) ?? []), 'replay']
    // The same id would be the same run, if the environment is.
    const runId = (event as { runId?: string }).runId === original ? { runId: `replay-${original}` } : {}
    return { ...event, ...runId, payload: { ...payload, runMetadata, runTags } }
  })
}
