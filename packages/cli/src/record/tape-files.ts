/** `tacho tape`: stores a run in a file from which it can be replayed. */
import { mkdirSync } from 'node:fs'
import { constants, open } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { Option, type Command } from 'commander'
import { tapeComment, tapeOfComment } from '@tacho/contract/issues/failure.ts'
import { connect, inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { counted, printable, printJson, printLine } from '../engine/output.ts'
import { writeNewFile } from '../engine/files.ts'
import { known } from '../engine/find-by-id.ts'
import { Refused } from '../engine/operator-client.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { findPlace } from '../tenants/tenants.ts'
import type { Ignored } from './tape/compare.ts'
import { differenceText } from './tape/cursor.ts'
import { tapeDifferences } from './tape/outcome.ts'
import { maskedTape, tapeOfRun, type RunSource } from './tape/read-run.ts'
import { readTape, TAPE_LIMITS, TapeFault, type Tape } from './tape/tape.ts'

const MASKS = ['email', 'cardNumber', 'phone', 'iban'] as const

interface TapeOptions extends EnvironmentOptions {
  output: string
  fromIssue?: string
  mask?: (typeof MASKS)[number][]
}

interface DiffOptions {
  ignore?: string[]
  json?: true
}

export function addTape(command: Command): void {
  inEnvironment(command)
    .option('-o, --output <place>', 'folder, or a file that ends with .jsonl', 'tapes')
    .option('--from-issue <issue>', 'the run of the newest occurrence of an issue')
    .addOption(
      new Option('--mask <kinds...>', 'what must be masked besides credentials, or nothing is written').choices(MASKS),
    )
    .addHelpText(
      'after',
      `
A tape has what the models answered, what guarded tools returned, the decisions, and what people approved, masked as it was
recorded. It is made to be reviewed and kept in git. An existing file is never overwritten. The command says what keeps
\`tacho replay\` from answering a step, and exits with 3 then; the file is written all the same.

Examples:
  tacho tape order-4711
  tacho tape order-4711 -o tapes/refund-twice.jsonl
  tacho tape --from-issue 0198a8a3 -o tapes
  tacho tape diff tapes/monday.jsonl tapes/tuesday.jsonl`,
    )
    .action(writeTape)
  command
    .command('diff <a> <b>')
    .description('differences between two tapes of the same thing: what each run makes anew, such as times and ids')
    .addOption(ignoreOption())
    .option('--json', 'print JSON instead of text')
    .action(diffTapes)
}

export function ignoreOption(): Option {
  return new Option(
    '--ignore <path>',
    'what may differ, such as tool.input.requestId, refund.input.at or model.system; may repeat',
  ).argParser((givenFile: string, earlier: string[] | undefined) => [...(earlier ?? []), givenFile])
}

export function ignoredOf(paths: readonly string[] = []): Ignored {
  return paths.map((one) => one.split('.'))
}

async function writeTape(runId: string | undefined, options: TapeOptions): Promise<void> {
  const { fromIssue, output, mask = [] } = options
  if ((runId === undefined) === (fromIssue === undefined)) throw wrongUsage('Give either a run or --from-issue.')
  const client = connect(options)
  const { workspace, environment } = await findPlace(client, options.environment, '--environment')
  const source: RunSource = { client, workspaceId: workspace.id, environmentId: environment.id }
  const occurrence = fromIssue === undefined ? undefined : await newestOccurrence(source, fromIssue)
  const tape = await tapeOfRun(source, occurrence?.runId ?? runId ?? '')
  const text = await maskedTape(tape, Object.fromEntries(mask.map((kind) => [kind, true])))
  const file = output.endsWith('.jsonl') ? output : path.join(output, tapeName(tape.head.run))
  mkdirSync(path.dirname(file), { recursive: true })
  await writeNewFile(file, Readable.from([Buffer.from(text)]), () => undefined)
  const { checksum } = readTape(Buffer.from(text)).head
  if (occurrence) await noteTape(source, { ...occurrence, checksum })
  const { replayable } = tape.head
  if (replayable !== true) process.exitCode = 3
  if (options.json) return printJson({ file, run: tape.head.run, steps: tape.steps.length, checksum, replayable })
  printLine(`Tape of run ${printable(tape.head.run)} with ${counted(tape.steps.length, 'step')} written to ${file}.`)
  for (const line of obstacleLines(tape)) printLine(line)
}

const OBSTACLES_SHOWN = 20

export function obstacleLines({ head: { replayable } }: Tape): string[] {
  if (replayable === true) return []
  const lines = replayable
    .slice(0, OBSTACLES_SHOWN)
    .map(({ step, why }) => `  ${step === 0 ? 'run' : `step ${step}`}: ${printable(why)}`)
  const more = replayable.length - lines.length
  return ['It cannot be replayed whole:', ...lines, ...(more > 0 ? [`  and ${more} more`] : [])]
}

export async function newestOccurrence(
  { client, environmentId }: RunSource,
  issueName: string,
): Promise<{ issueId: string; runId: string }> {
  const read = (issueId: string) => client.readIssue({ params: { environmentId, issueId } })
  const { id: issueId } = await known('issue', issueName, { client, environmentId }, read)
  const { items } = await client.listOccurrences({ params: { environmentId, issueId }, query: { limit: 100 } })
  const runId = items.find((one) => one.runId !== null)?.runId
  if (runId === undefined || runId === null) throw failed('The newest occurrences of the issue name no run.')
  return { issueId, runId }
}

/** Notes on the issue that it has a test. */
export async function noteTape(
  { client, environmentId }: RunSource,
  { issueId, runId, checksum }: { issueId: string; runId: string; checksum: string },
): Promise<void> {
  const params = { environmentId, issueId }
  const { items } = await client.listIssueActivity({ params, query: { limit: 100 } })
  if (items.some(({ text }) => text !== null && tapeOfComment(text)?.checksum === checksum)) return
  try {
    await client.commentIssue({ params, body: { text: tapeComment(runId, checksum) } })
  } catch (error) {
    // A refused comment is only a warning: who may read the run may write its tape, without the right to comment.
    if (!(error instanceof Refused)) throw error
    process.stderr.write(`tacho: The issue does not know the tape: ${error.message}\n`)
  }
}

/**
 * A file name for a run id, which may contain anything. @param checksum tells runs with similar ids in one folder
 * apart.
 */
export function tapeName(runId: string, checksum = ''): string {
  const plain = runId.replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '')
  return `${plain.slice(0, 100) || 'run'}${checksum === '' ? '' : `-${checksum.slice(0, 8)}`}.jsonl`
}

export async function tapeIn(file: string): Promise<Tape> {
  try {
    return readTape(await bytesOf(file))
  } catch (error) {
    if (error instanceof TapeFault) throw failed(`${printable(file)} ${error.message}.`)
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw failed(`${JSON.stringify(file)} cannot be read (${code}).`)
  }
}

async function bytesOf(file: string): Promise<Buffer> {
  // Open without blocking: a pipe without a writer would wait for ever, and a device never ends.
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new TapeFault('is no regular file')
    const { size } = stat
    if (size > TAPE_LIMITS.bytes) throw new TapeFault(`has more than ${TAPE_LIMITS.bytes / 1_048_576} MiB`)
    const bytes = Buffer.alloc(size)
    const { bytesRead } = await handle.read(bytes, 0, size, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

async function diffTapes(a: string, b: string, { ignore, json }: DiffOptions): Promise<void> {
  const [one, other] = [await tapeIn(a), await tapeIn(b)]
  const differences = tapeDifferences(one.steps, other.steps, ignoredOf(ignore))
  if (differences.length > 0) process.exitCode = 3
  if (json) return printJson({ items: differences })
  if (differences.length === 0) return printLine('The tapes differ nowhere.')
  for (const one of differences) printLine(printable(`step ${one.step}: ${differenceText(one)}`))
  const paths = [...new Set(differences.map(({ ignore }) => ignore).filter((path) => path !== ''))]
  if (paths.length > 0) printLine(printable(`To ignore them: ${paths.map((path) => `--ignore ${path}`).join(' ')}`))
}
