/** `tacho test`: replays tapes and checks the results. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { writeJunit } from '../engine/files.ts'
import { connect, wholeNumber } from '../engine/options.ts'
import { counted, printable, printJson, printLine } from '../engine/output.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { datasetsFolder } from './dataset.ts'
import { openPricing, spentIn } from './experiment/run-facts.ts'
import { datasetFile, readDataset, type Dataset } from './tape/dataset-file.ts'
import { NO_EXPECTATIONS, readExpectations, unfulfilled, type Expectations } from './tape/expectations.ts'
import {
  replacementsOf,
  withPrompts,
  withReplacements,
  type ReplacementOptions,
  type Replacements,
} from './tape/replacements.ts'
import { replayCommand } from './tape/replay-command.ts'
import type { TapeStep } from './tape/tape.ts'
import { ignoredOf, ignoreOption, tapeIn } from './tape-files.ts'

interface TestOptions extends ReplacementOptions {
  dataset?: string
  in: string
  ignore?: string[]
  runReadOnly?: true
  url?: string
  junit?: string
  timeout: number
  json?: true
}

interface TapeResult {
  tape: string
  ok: boolean
  /** The failed expectations, one sentence each. */
  faults: string[]
  milliseconds: number
}

const TIMEOUT_SECONDS = 120

export function addTest(command: Command): void {
  withReplacements(command)
    .usage('[options] <place> -- <command> [args...]')
    .option('--dataset <name@version>', 'the tapes of a dataset, without a place')
    .addOption(datasetsFolder())
    .addOption(ignoreOption())
    .option('--run-read-only', 'let the tools that a file beside a tape names in readOnly run for real')
    .option(
      '--url <address>',
      'address of Tacho for --prompt and --policies-of (TACHO_URL; default http://localhost:4680)',
    )
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option('--timeout <seconds>', 'ends a command', wholeNumber(86_400), TIMEOUT_SECONDS)
    .option('--json', 'print JSON instead of text')
    .addHelpText(
      'after',
      `
The place is a tape, or a folder of tapes. Each is replayed with the command, as \`tacho replay\` does. A file beside a tape,
refund.yaml for refund.jsonl, says more: mode, ignore, readOnly, outcome, tools, never, calls, answer and budget (docs/replay.md).
The exit code is 1 if a test fails. A test with readOnly fails without --run-read-only: a file runs no tool by itself.

Examples:
  tacho test tapes -- node agent.js
  tacho test tapes/refund.jsonl --ignore tool.input.requestId --junit results.xml -- python agent.py`,
    )
    .action(testTapes)
}

async function testTapes(place: string | undefined, afterPlace: string[], options: TestOptions): Promise<void> {
  const { dataset } = options
  // With a dataset there is no place, so the first word belongs to the command.
  const words = dataset === undefined || place === undefined ? afterPlace : [place, ...afterPlace]
  if (words.length === 0) throw wrongUsage('Give a command after --.')
  const checksums = new Map<string, string>()
  const files = dataset === undefined ? tapesIn(place ?? '') : datasetFiles(readDataset(options.in, dataset), checksums)
  const replacements = await replacementsOf(options, () => connect(options))
  const results: TapeResult[] = []
  for (const file of files) {
    const result = await testTape(file, checksums.get(file), words, options, replacements)
    results.push(result)
    if (!options.json) for (const line of linesOf(result)) printLine(line)
  }
  const wrong = results.filter(({ ok }) => !ok).length
  if (wrong > 0) process.exitCode = 1
  if (options.junit !== undefined) {
    const cases = results.map(({ tape, ok, faults, milliseconds }) => {
      return { name: tape, failure: ok ? null : faults.join('\n'), seconds: milliseconds / 1_000 }
    })
    writeJunit(options.junit, 'tacho test', 'tapes', cases)
  }
  if (options.json) return printJson({ passed: results.length - wrong, failed: wrong, items: results })
  printLine(`${results.length - wrong} of ${counted(results.length, 'tape')} passed.`)
}

function linesOf({ tape, ok, faults, milliseconds }: TapeResult): string[] {
  if (ok) return [`✓ ${printable(tape)} (${milliseconds} ms)`]
  return [`✗ ${printable(tape)}`, ...faults.flatMap((fault) => fault.split('\n')).map((line) => `  ${printable(line)}`)]
}

function datasetFiles(dataset: Dataset, checksums: Map<string, string>): string[] {
  const { tapes, name, version } = dataset
  if (tapes.length === 0) throw failed(`${printable(name)}@${version} has no tapes.`)
  for (const tape of tapes) checksums.set(datasetFile(dataset, tape), tape.checksum)
  return [...checksums.keys()]
}

function tapesIn(place: string): string[] {
  const foundTapes = existsSync(place) && statSync(place).isDirectory()
  if (!foundTapes) return [place]
  const files = readdirSync(place)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
  if (files.length === 0) throw failed(`${JSON.stringify(place)} has no tapes: \`tacho tape\` writes them.`)
  return files.map((name) => path.join(place, name))
}

async function testTape(
  file: string,
  checksum: string | undefined,
  words: readonly string[],
  options: TestOptions,
  { prompts, ...rules }: Replacements,
): Promise<TapeResult> {
  const tape = await tapeIn(file)
  if (checksum !== undefined && tape.head.checksum !== checksum)
    throw failed(`${printable(file)} is not the tape that the dataset names.`)
  const expected = expectationsBeside(file)
  const { mode, ignore, readOnly } = expected
  if (readOnly.length > 0 && !options.runReadOnly) {
    const fault = `readOnly lets ${readOnly.join(', ')} run for real: give --run-read-only if that is what you want`
    return { tape: file, ok: false, faults: [fault], milliseconds: 0 }
  }
  const replay = await replayCommand(withPrompts(tape, prompts), words, {
    mode,
    ignored: ignoredOf([...(options.ignore ?? []), ...ignore]),
    readOnly: new Set(readOnly),
    ...rules,
    timeoutMs: options.timeout * 1_000,
    output: options.json ? 'ignore' : 'stderr',
  }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === undefined ? error : failed(`${printable(words[0] ?? '')} cannot be started (${error.code}).`)
  })
  const { departure, isSilent, milliseconds } = replay
  // After a difference, all later values would differ too.
  const { tokens, cost } = expected.budget
  const spent = departure || (tokens ?? cost) === undefined ? UNKNOWN : await spentBy(replay.steps)
  const faults = departure ? [departure.sentence] : unfulfilled(expected, tape, replay, spent)
  if (isSilent && tape.head.recordedBy !== 'wire')
    faults.push('the command recorded nothing: it has no SDK, or does not record')
  return { tape: file, ok: faults.length === 0, faults, milliseconds }
}

const UNKNOWN = { tokens: null, cost: null }

/** Uses the built-in price table, so that a test has the same result without Tacho. */
async function spentBy(steps: readonly TapeStep[]): Promise<{ tokens: number | null; cost: number | null }> {
  const pricing = await openPricing()
  try {
    return await spentIn(steps, pricing)
  } finally {
    await pricing.close()
  }
}

function expectationsBeside(file: string): Expectations {
  const beside = `${file.replace(/\.jsonl$/, '')}.yaml`
  if (!existsSync(beside)) return NO_EXPECTATIONS
  if (!statSync(beside).isFile()) throw failed(`${printable(beside)} is no regular file.`)
  try {
    return readExpectations(readFileSync(beside, 'utf8'))
  } catch (error) {
    throw failed(`${printable(beside)}: ${printable((error as Error).message)}.`)
  }
}
