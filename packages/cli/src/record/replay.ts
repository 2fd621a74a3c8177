/** `tacho replay`: runs a command whose models and guarded tools a tape answers. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { readFileSync } from 'node:fs'
import type { EventInput } from '@tacho/contract/record/event.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { readApiKey } from '../engine/credentials.ts'
import { readUrl } from '../engine/server-address.ts'
import { connect, wholeNumber } from '../engine/options.ts'
import { counted, printable, printJson, printLine } from '../engine/output.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { openRecorder } from './recorder-client.ts'
import { replacementsOf, withPrompts, withReplacements, type ReplacementOptions } from './tape/replacements.ts'
import { linkedEvents, replayCommand, serveReplay, type CommandReplay } from './tape/replay-command.ts'
import type { ReplayMode } from './tape/cursor.ts'
import type { Tape } from './tape/tape.ts'
import { ignoredOf, ignoreOption, obstacleLines, tapeIn } from './tape-files.ts'

interface ReplayOptions extends ReplacementOptions {
  mode?: ReplayMode
  ignore?: string[]
  from?: number
  model?: string
  readOnly?: string[]
  stubs?: string
  record?: true
  url?: string
  timeout: number
  serve?: true
  json?: true
}

const TIMEOUT_SECONDS = 600

export function addReplay(command: Command): void {
  withReplacements(command)
    .usage('[options] <tape> -- <command> [args...]')
    .addOption(
      new Option(
        '--mode <mode>',
        'strict: models and tools from the tape; tools: live models, tools from the tape. Default: tools with --prompt, --stubs or --read-only, which change what the agent is answered; else strict',
      ).choices(['strict', 'tools']),
    )
    .addOption(ignoreOption())
    .option(
      '--from <step>',
      'answer from the tape before this step, and let the agent go on alone',
      wholeNumber(100_000),
    )
    .option('--model <model>', 'after --from: ask this model, whatever the agent names')
    .option('--read-only <tools...>', 'tools that may run for real if the tape does not have a call of them')
    .option('--stubs <file>', 'JSON with an answer by tool, for calls that the tape does not have')
    .option('--record', 'record the replay as a run, in the environment of TACHO_API_KEY')
    .option(
      '--url <address>',
      'address of Tacho for --record, --prompt and --policies-of (TACHO_URL; default http://localhost:4680)',
    )
    .option('--timeout <seconds>', 'ends the command', wholeNumber(86_400), TIMEOUT_SECONDS)
    .option('--serve', 'without a command: answer the process that started this one, as `replay` of the SDKs needs it')
    .option('--json', 'print JSON instead of text')
    .addHelpText(
      'after',
      `
The command is run as it is, with variables that lead the SDKs and the clients of models to the tape. Guarded tools never
run, unless --read-only names them or --from has passed. Tools without a guard do run. The first step at which the agent
leaves the tape ends the replay; the exit code is 3 then. In the mode strict nothing live is needed; for an agent that you
changed on purpose, use --mode tools. TACHO_REPLAY_INPUT has the user's first message.

Examples:
  tacho replay tapes/order-4711.jsonl -- node agent.js
  tacho replay tapes/order-4711.jsonl --mode tools --read-only get_order -- python agent.py
  tacho replay tapes/order-4711.jsonl --from 7 --model gpt-5-mini -- node agent.js`,
    )
    .action(replay)
}

async function replay(file: string, words: string[], options: ReplayOptions): Promise<void> {
  if ((words.length === 0) !== (options.serve === true)) throw wrongUsage('Give a command after --, or --serve.')
  if (options.model !== undefined && options.from === undefined) throw wrongUsage('--model needs --from.')
  const tape = await tapeIn(file)
  const { from, model, timeout } = options
  const mode = options.mode ?? modeFor(options)
  const last = tape.steps.at(-1)?.step ?? 0
  if (from !== undefined && from > last) throw wrongUsage(`--from must be a step of the tape, which has ${last}.`)
  if (mode === 'strict' && from === undefined) for (const line of obstacleLines(tape)) process.stderr.write(`${line}\n`)
  const { prompts, ...rules } = await replacementsOf(options, () => connect(options))
  const answers = {
    mode,
    from,
    model,
    ignored: ignoredOf(options.ignore),
    readOnly: new Set(options.readOnly),
    stubs: stubsIn(options.stubs),
    ...rules,
  }
  const served = withPrompts(tape, prompts)
  if (options.serve) return serve(served, answers, options)
  const commandOptions = { ...answers, timeoutMs: timeout * 1_000, output: 'stderr' } as const
  const result = await replayCommand(served, words, commandOptions).catch((error: NodeJS.ErrnoException) => {
    throw error.code === undefined ? error : failed(`${printable(words[0] ?? '')} cannot be started (${error.code}).`)
  })
  if (result.verdict !== 'same') process.exitCode = 3
  const recorded = options.record ? await record(result, tape.head.run, options.url) : undefined
  if (options.json) return printJson({ ...summaryOf(result), ...(recorded && { recorded }) })
  for (const line of verdictLines(result)) printLine(line)
  const left = tape.steps.find(({ step }) => step === result.departure?.step)
  if (mode === 'strict' && left?.kind === 'model')
    printLine(
      'If you changed the agent on purpose, use --mode tools: models are live, and tools are answered by the tape.',
    )
  if (recorded) printLine(`Recorded as ${printable(recorded)}.`)
}

/** A changed agent has live models (mode `tools`), because the tape has no answers to its new requests. */
function modeFor({ prompt, stubs, readOnly }: ReplayOptions): ReplayMode {
  return prompt !== undefined || stubs !== undefined || readOnly !== undefined ? 'tools' : 'strict'
}

/** A difference is no error here: the calling process reports it as its test runner does. */
async function serve(tape: Tape, answers: Parameters<typeof serveReplay>[1], { record: isKept, url }: ReplayOptions) {
  const result = await serveReplay(tape, answers)
  if (!result) return
  const recorded = isKept ? await record(result, tape.head.run, url) : undefined
  const isUnheard = result.isSilent && tape.head.recordedBy === 'sdk' && !result.departure
  const fault = isUnheard
    ? 'The agent recorded nothing: make its client of Tacho inside of the function, so that it finds the tape.'
    : result.departure && verdictLines(result).join('\n')
  process.stdout.write(`${JSON.stringify({ ...summaryOf(result), fault, ...(recorded && { recorded }) })}\n`)
}

export function summaryOf({ verdict, departure, outcome, steps, code, milliseconds }: CommandReplay) {
  return { verdict, departure, outcome, steps: steps.length, exitCode: code, milliseconds }
}

export function verdictLines({ verdict, departure, outcome, steps, isSilent }: CommandReplay): string[] {
  const silent = isSilent ? ['The command recorded nothing: only its requests to models were compared.'] : []
  if (departure) return [...silent, 'The agent went another way:', ...departure.sentence.split('\n').map(printable)]
  return [
    ...silent,
    `${verdict === 'same' ? 'Same' : verdict}: ${counted(steps.length, 'step')}, ${printable(outcome)}.`,
  ]
}

async function record(result: CommandReplay, original: string, givenUrl: string | undefined): Promise<string> {
  const events = linkedEvents(result.events, original) as unknown as EventInput[]
  const [first] = events
  if (!first) throw failed('The command recorded nothing, so there is no run to keep.')
  const { refused } = await openRecorder(readUrl(givenUrl), readApiKey()).record(events)
  if (refused[0])
    throw failed(`${counted(refused.length, 'event')} of the replay could not be recorded: ${refused[0].message}.`)
  return first.runId
}

export function stubsIn(file: string | undefined): Map<string, unknown> {
  if (file === undefined) return new Map()
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const { code = 'it is not JSON' } = error as NodeJS.ErrnoException
    throw failed(`${JSON.stringify(file)} cannot be read (${code}).`)
  }
  if (!isObject(value))
    throw new InvalidArgumentError(`${JSON.stringify(file)} must be an object: tool names and answers.`)
  return new Map(Object.entries(value))
}
