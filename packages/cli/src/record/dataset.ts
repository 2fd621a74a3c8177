/** `tacho dataset`: named sets of tapes with versions, for tests and experiments. */
import { readFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { connect, inEnvironment, withJson, wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { counted, printable, printEmpty, printJson, printLine, printTable } from '../engine/output.ts'
import { failed, Stop, wrongUsage } from '../engine/stop.ts'
import { findPlace } from '../tenants/tenants.ts'
import { runsOf, tapesOf, type WantedRun } from './experiment/choose-runs.ts'
import type { LeftOutRun } from './experiment/experiment-folder.ts'
import {
  changeDataset,
  createDataset,
  DATASET_TAPES_MAX,
  datasetFile,
  datasetsIn,
  isThere,
  keepTape,
  readDataset,
  type Dataset,
  type DatasetTape,
} from './tape/dataset-file.ts'
import type { RunSource } from './tape/read-run.ts'
import { newestOccurrence, noteTape, tapeIn, tapeName } from './tape-files.ts'

interface InOptions {
  in: string
  json?: true
}

interface AddOptions extends EnvironmentOptions {
  in: string
  runs?: string
  limit: number
  fromIssue?: string
  judged?: 'good' | 'bad'
  score: string
}

const [RUNS, RUNS_MAX] = [100, 1_000]

export const datasetsFolder = (): Option => new Option('--in <folder>', 'where the datasets are').default('datasets')

export function addDataset(dataset: Command): void {
  const make = (words: string, about: string) =>
    withJson(dataset.command(words).description(about)).addOption(datasetsFolder())
  make('create <name>', 'create an empty dataset').action((name: string, options: InOptions) =>
    tell(createDataset(options.in, name), [], options),
  )
  const add = dataset
    .command('add <name> [tapes...]')
    .description('add tapes of files, or runs: a new version')
    .addOption(datasetsFolder())
    .option('--runs <filters>', 'runs of these filters of `tacho runs list`, such as "status=FAILED since=7d"')
    .option('--limit <number>', 'the newest of them', wholeNumber(RUNS_MAX), RUNS)
    .option('--from-issue <issue>', 'the run of the newest occurrence of an issue')
    .addOption(new Option('--judged <word>', 'runs that people judged so; also with --runs').choices(['good', 'bad']))
    .option('--score <name>', 'the name of that judgement', 'quality')
  inEnvironment(add)
    .addHelpText(
      'after',
      `
Tapes are masked and checked as \`tacho tape\` does. A run that cannot be replayed is named and not added. \`name@3\` is version 3
for ever: \`tacho test --dataset airline@3\`, \`tacho experiment run --dataset airline@3\`. Keep the folder in git.

Examples:
  tacho dataset create airline
  tacho dataset add airline --runs "status=FAILED tool=refund since=7d"
  tacho dataset add airline --judged bad --runs "agent=Refunds"
  tacho dataset add airline --from-issue 0198a8a3
  tacho dataset add airline tapes/order-4711.jsonl`,
    )
    .action(addTapes)
  make('list', 'list the datasets').action(listDatasets)
  make('show <name>', 'show the tapes of a dataset, or of one version of it: airline@3').action(showDataset)
  make(
    'remove <name> <tapes...>',
    'take tapes out, by run or by the beginning of their checksum: a new version',
  ).action(removeTapes)
}

async function addTapes(name: string, files: string[], options: AddOptions): Promise<void> {
  const { runs, fromIssue, judged, score } = options
  const dataset = readDataset(options.in, name)
  if (dataset.version !== dataset.versions.length) throw wrongUsage('Only the newest version grows: give no @.')
  const added = new Map<string, { tape: DatasetTape; text: string }>()
  for (const file of files) {
    const { run, checksum } = (await tapeIn(file)).head
    added.set(checksum, { tape: { run, checksum, scores: {} }, text: readFileSync(file, 'utf8') })
  }
  let leftOut: LeftOutRun[] = []
  if (runs !== undefined || judged !== undefined || fromIssue !== undefined) {
    const source = await sourceOf(options)
    const wanted: WantedRun[] = []
    const occurrence = fromIssue === undefined ? undefined : await newestOccurrence(source, fromIssue)
    if (occurrence) wanted.push({ run: occurrence.runId, scores: {} })
    const filters = [runs, judged && `"score=${score}=${judged === 'good'}"`].filter((text) => text !== undefined)
    if (filters.length > 0) wanted.push(...(await runsOf(source, filters.join(' '), options.limit)).wanted)
    const texts = new Map<string, string>()
    const read = await tapesOf(source, wanted, (file, text) => (texts.set(file, text), file))
    for (const { run, checksum, scores } of read.chosen)
      added.set(checksum, { tape: { run, checksum, scores }, text: texts.get(tapeName(run, checksum)) ?? '' })
    const ofIssue = occurrence && read.chosen.find(({ run }) => run === occurrence.runId)
    if (occurrence && ofIssue) await noteTape(source, { ...occurrence, checksum: ofIssue.checksum })
    leftOut = read.leftOut
  } else if (files.length === 0) throw wrongUsage('Give tapes, --runs, --judged or --from-issue.')
  const known = new Set(dataset.tapes.map(({ checksum }) => checksum))
  const more = [...added.values()].filter(({ tape }) => !known.has(tape.checksum))
  if (dataset.tapes.length + more.length > DATASET_TAPES_MAX)
    throw failed(`A dataset has at most ${DATASET_TAPES_MAX} tapes.`)
  for (const { tape, text } of more) keepTape(dataset, tape, text)
  const sources = [runs && `runs ${runs}`, judged && `${score} ${judged}`, fromIssue && `issue ${fromIssue}`]
  const why = ['added', ...sources, files.length > 0 && counted(files.length, 'file')].filter(Boolean).join(', ')
  tell(changeDataset(dataset, { why, added: more.map(({ tape }) => tape), removed: [] }), leftOut, options)
}

async function sourceOf(options: AddOptions): Promise<RunSource> {
  const client = connect(options)
  const { workspace, environment } = await findPlace(client, options.environment, '--environment')
  return { client, workspaceId: workspace.id, environmentId: environment.id }
}

function removeTapes(name: string, sought: string[], options: InOptions): void {
  const dataset = readDataset(options.in, name)
  if (dataset.version !== dataset.versions.length) throw wrongUsage('Only the newest version changes: give no @.')
  const removed = sought.flatMap((one) => {
    const matching = dataset.tapes.filter(
      ({ run, checksum }) => run === one || (one.length >= 4 && checksum.startsWith(one)),
    )
    if (matching.length === 0) throw failed(`${printable(name)} has no tape of ${JSON.stringify(one)}.`)
    return matching.map(({ checksum }) => checksum)
  })
  tell(changeDataset(dataset, { why: 'removed', added: [], removed: [...new Set(removed)] }), [], options)
}

function tell(dataset: Dataset, leftOut: LeftOutRun[], { json }: { json?: true }): void {
  const { name, folder, version, tapes, versions } = dataset
  if (leftOut.length > 0) process.exitCode = 3
  if (json) return printJson({ name, folder, version, tapes: tapes.length, leftOut })
  const { added = [], removed = [] } = versions.at(-1) ?? {}
  printLine(`${printable(name)}@${version}: ${counted(tapes.length, 'tape')} (+${added.length}, −${removed.length}).`)
  for (const { run, why } of leftOut) printLine(`  not added: ${printable(run)}: ${printable(why)}`)
}

function listDatasets(options: InOptions): void {
  const datasets = datasetsIn(options.in)
  const items = datasets.map(({ name, version, tapes, versions }) => {
    return { name, version, tapes: tapes.length, changedAt: versions.at(-1)?.at ?? '' }
  })
  if (options.json) return printJson({ items })
  if (items.length === 0) return printEmpty('No datasets. `tacho dataset create` makes one.')
  printTable(
    [
      { title: 'NAME' },
      { title: 'VERSION', align: 'right' },
      { title: 'TAPES', align: 'right' },
      { title: 'CHANGED', as: 'time' },
    ],
    items.map(({ name, version, tapes, changedAt }) => [name, String(version), String(tapes), changedAt]),
  )
}

async function showDataset(name: string, options: InOptions): Promise<void> {
  const dataset = readDataset(options.in, name)
  const { version, versions, tapes } = dataset
  const items: (DatasetTape & { file: string; isThere: boolean; fault: string | null })[] = []
  for (const tape of tapes) {
    const fault = await tapeFault(dataset, tape)
    items.push({ ...tape, file: datasetFile(dataset, tape), isThere: isThere(dataset, tape), fault })
  }
  if (options.json) return printJson({ name: dataset.name, version, versions, items })
  printTable(
    [{ title: 'RUN' }, { title: 'CHECKSUM' }, { title: 'FILE' }],
    items.map(({ run, checksum, file, fault }) => [run, checksum.slice(0, 12), fault ?? file]),
  )
  printLine()
  for (const { version: number, at, why, added, removed } of versions.slice(0, version))
    printLine(printable(`version ${number}, ${at}: ${why} (+${added.length}, −${removed.length})`))
}

/** Why the file is not this tape; null if it is. */
async function tapeFault(dataset: Dataset, tape: DatasetTape): Promise<string | null> {
  if (!isThere(dataset, tape)) return 'its file was removed'
  try {
    const { checksum } = (await tapeIn(datasetFile(dataset, tape))).head
    return checksum === tape.checksum ? null : 'its file is another tape'
  } catch (error) {
    if (error instanceof Stop) return error.message
    throw error
  }
}
