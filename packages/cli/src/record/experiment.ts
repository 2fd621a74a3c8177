/**
 * `tacho experiment`: replays many runs with live models and the tools' recorded answers, and compares the results with
 * the originals.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { openRecorder } from './recorder-client.ts'
import { readApiKey } from '../engine/credentials.ts'
import { readUrl } from '../engine/server-address.ts'
import { connect, inEnvironment, withJson, wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { counted, printable, printJson, printLine, printTable, spokenMoney } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { durationMs } from '../engine/time-text.ts'
import { findPlace } from '../tenants/tenants.ts'
import { datasetsFolder } from './dataset.ts'
import { runsOf, tapesOf, tapesOfDataset } from './experiment/choose-runs.ts'
import {
  ExperimentFolder,
  otherSetting,
  type Experiment,
  type ExperimentSettings,
} from './experiment/experiment-folder.ts'
import { openMeasure } from './experiment/measure.ts'
import { replayRuns } from './experiment/replay-runs.ts'
import { inOrder, reportPage, RESULT_COLUMNS, resultCells } from './experiment/report.ts'
import { openPricing } from './experiment/run-facts.ts'
import { sumLines, sumsOf } from './experiment/sums.ts'
import { stubsIn } from './replay.ts'
import { replacementsOf, withReplacements, type ReplacementOptions } from './tape/replacements.ts'
import { readDataset } from './tape/dataset-file.ts'
import { ignoreOption } from './tape-files.ts'

interface RunOptions extends EnvironmentOptions, ReplacementOptions {
  runs?: string
  dataset?: string
  in: string
  limit: number
  name?: string
  output: string
  ignore?: string[]
  readOnly?: string[]
  stubs?: string
  measure?: string
  maxCost?: number
  maxTime?: number
  parallel: number
  timeout: number
  record?: true
}

const [RUNS, RUNS_MAX, PARALLEL_MAX, TIMEOUT_SECONDS] = [100, 1_000, 32, 600]
const LEFT_OUT_SHOWN = 20

export function addExperiment(experiment: Command): void {
  const run = experiment
    .command('run [command...]')
    .description('replay runs with live models, and tools answered from their tapes')
    .usage('[options] --runs <filters> -- <command> [args...]')
    .option('--runs <filters>', 'filters of `tacho runs list`, such as "status=FAILED tool=refund since=7d"')
    .option('--limit <number>', 'the newest of them', wholeNumber(RUNS_MAX), RUNS)
    .option('--dataset <name@version>', 'the tapes of a dataset, instead of --runs')
    .addOption(datasetsFolder())
    .option('--name <name>', 'of the experiment and its folder; default: made from what it does')
    .option('-o, --output <folder>', 'where the folder of the experiment is', 'experiments')
  withReplacements(inEnvironment(run))
    .addOption(ignoreOption())
    .option('--read-only <tools...>', 'tools that may run for real if the tape does not have a call of them')
    .option('--stubs <file>', 'JSON with an answer by tool, for calls that the tape does not have')
    .option('--measure <file or command>', 'your own function: how much better a replay is than its run, as a number')
    .option(
      '--max-cost <amount>',
      'ends the experiment when its models have cost this much, in US dollars',
      parseAmount,
    )
    .addOption(new Option('--max-time <duration>', 'ends the experiment, such as 30m').argParser(parseDuration))
    .option('--parallel <number>', 'replays at once', wholeNumber(PARALLEL_MAX), 4)
    .option('--timeout <seconds>', 'ends a replay', wholeNumber(86_400), TIMEOUT_SECONDS)
    .option('--record', 'record the replays as runs, in the environment of TACHO_API_KEY')
    .addHelpText(
      'after',
      `
The command is run once for each run, as \`tacho replay --mode tools\` does: guarded tools never run. Results are in the folder of
the experiment: a page (report.html), and the table again with \`tacho experiment show\`. The same command goes on after it was
killed or reached a bound. Exit code 3: some runs have no result yet.

Examples:
  tacho experiment run --runs "status=FAILED tool=refund since=7d" --prompt greeting@5 --max-cost 5 -- node agent.js
  tacho experiment run --runs "agent=Refunds errors" --policies drafts.yaml --measure judge.mjs -- python agent.py
  tacho experiment run --dataset airline@3 --policies-of staging -- node agent.js`,
    )
    .action(runExperiment)
  withJson(experiment.command('show <folder>').description('show the results of an experiment so far')).action(
    (folder: string, { json }: { json?: true }) => showExperiment(folder, json === true),
  )
}

function parseAmount(text: string): number {
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text) && Number(text) > 0) return Number(text)
  throw new InvalidArgumentError('It must be an amount such as 2.50.')
}

function parseDuration(text: string): number {
  const ms = durationMs(text)
  if (ms !== null && ms > 0) return ms
  throw new InvalidArgumentError('It must be a duration such as 30s, 5m or 2h.')
}

async function runExperiment(command: string[], options: RunOptions): Promise<void> {
  if (command.length === 0) throw wrongUsage('Give a command after --.')
  const { dataset: datasetName } = options
  if ((options.runs === undefined) === (datasetName === undefined))
    throw wrongUsage('Give either --runs, such as --runs "status=FAILED since=7d", or --dataset.')
  const dataset = datasetName === undefined ? null : readDataset(options.in, datasetName)
  const runs = dataset ? `dataset ${dataset.name}@${dataset.version}` : (options.runs ?? '')
  const client = connect(options)
  const { workspace, environment, name: placeName } = await findPlace(client, options.environment, '--environment')
  const source = { client, workspaceId: workspace.id, environmentId: environment.id }
  const settings: ExperimentSettings = {
    runs,
    limit: options.limit,
    environment: placeName,
    command,
    ...(await replacementsOf(options, () => client, environment.id)),
    ignore: options.ignore ?? [],
    readOnly: options.readOnly ?? [],
    stubs: Object.fromEntries(stubsIn(options.stubs)),
    measure: options.measure ?? null,
    timeoutSeconds: options.timeout,
  }
  const name = options.name ?? nameOf(settings)
  const folder = new ExperimentFolder(path.join(options.output, name))
  mkdirSync(folder.folder, { recursive: true, mode: 0o700 })
  folder.lock()
  const experiment = folder.read() ?? (await begin())
  const other = otherSetting(experiment.settings, settings)
  if (other !== undefined)
    throw failed(`${printable(folder.folder)} has another experiment: ${other} differs. Give another --name.`)
  tellBeginning(experiment, folder)
  const measure = options.measure === undefined ? undefined : await openMeasure(options.measure)
  const recorder = options.record && openRecorder(readUrl(options.url), readApiKey())
  const pricing = await openPricing(source)
  const progress = await startProgress('Replaying', experiment.chosen.length)
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  let reason: string | undefined
  try {
    const bounds = { maxCost: options.maxCost, maxMs: options.maxTime, parallel: options.parallel }
    const onResult = () => {
      const spent = spokenMoney(Math.round(folder.spent * 1e4) / 1e4)
      progress.update(folder.results.size, `${folder.results.size} of ${experiment.chosen.length} runs, ${spent}`)
    }
    reason = await replayRuns(experiment, bounds, {
      folder,
      pricing,
      measure,
      recorder,
      onResult,
      signal: interruption.signal,
    })
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
    progress.end('')
    await pricing.close()
    folder.write('report.html', reportPage(experiment, folder.results))
  }
  showResults(experiment, folder, options.json === true)
  const left = experiment.chosen.length - folder.results.size
  if (left === 0) return
  process.exitCode = interruption.signal.aborted ? 130 : 3
  process.stderr.write(
    `${counted(left, 'run')} without a result${reason === undefined ? '' : `: ${reason}`}. The same command goes on.\n`,
  )

  async function begin(): Promise<Experiment> {
    const write = (file: string, text: string) => folder.writeTape(file, text)
    const { wanted, hasMore } = dataset
      ? { wanted: dataset.tapes, hasMore: false }
      : await runsOf(source, settings.runs, settings.limit)
    if (wanted.length === 0) throw failed(dataset ? 'The dataset is empty.' : 'No run matches the filters.')
    const { chosen, leftOut } = dataset ? await tapesOfDataset(dataset, write) : await tapesOf(source, wanted, write)
    if (chosen.length === 0) {
      const names = leftOut.slice(0, LEFT_OUT_SHOWN).map(({ run, why }) => `\n  ${printable(run)}: ${printable(why)}`)
      throw failed(
        `None of ${counted(leftOut.length, 'run')} can be replayed, so there is nothing to compare:${names.join('')}`,
      )
    }
    const begun: Experiment = {
      experiment: 1,
      name,
      begunAt: new Date().toISOString(),
      settings,
      chosen,
      leftOut,
      hasMore,
    }
    folder.begin(begun)
    return begun
  }
}

/** The default name. Equal settings give the same name, so the same command continues its experiment. */
function nameOf(settings: ExperimentSettings): string {
  const [prompt] = settings.prompts
  const digest = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 8)
  return `${prompt ? `${prompt.name.replace(/[^\w.-]+/g, '-').slice(0, 40)}-${prompt.version}-` : ''}${digest}`
}

/** Prints the plan at once, before anything is spent. */
function tellBeginning({ chosen, leftOut, hasMore, settings }: Experiment, folder: ExperimentFolder): void {
  const done = folder.results.size
  const lines = [
    `${counted(chosen.length, 'run')} in ${printable(folder.folder)}${done > 0 ? `, of which ${done} have a result already` : ''}.`,
    ...(hasMore ? [`More runs match: these are the newest ${settings.limit}.`] : []),
    ...(leftOut.length > 0 ? [`${counted(leftOut.length, 'run')} cannot be replayed:`] : []),
    ...leftOut.slice(0, LEFT_OUT_SHOWN).map(({ run, why }) => `  ${printable(run)}: ${printable(why)}`),
    ...(leftOut.length > LEFT_OUT_SHOWN ? [`  and ${leftOut.length - LEFT_OUT_SHOWN} more, in experiment.json`] : []),
  ]
  process.stderr.write(`${lines.join('\n')}\n`)
}

function showExperiment(place: string, asJson: boolean): void {
  const folder = new ExperimentFolder(place)
  const experiment = folder.read()
  if (!experiment) throw failed(`${JSON.stringify(place)} has no experiment, or its runs are not chosen yet.`)
  showResults(experiment, folder, asJson)
}

function showResults(experiment: Experiment, folder: ExperimentFolder, asJson: boolean): void {
  const results = inOrder(folder.results.values())
  const sums = sumsOf(results)
  const page = path.join(folder.folder, 'report.html')
  const { name, begunAt, chosen, leftOut, hasMore } = experiment
  const left = chosen.filter(({ run }) => !folder.results.has(run)).map(({ run }) => run)
  if (asJson) {
    const spent = Math.round(folder.spent * 1e9) / 1e9
    return printJson({
      name,
      begunAt,
      folder: folder.folder,
      page,
      spent,
      hasMore,
      sums,
      items: results,
      left,
      leftOut,
    })
  }
  if (results.length > 0) printTable(RESULT_COLUMNS, results.map(resultCells))
  printLine()
  for (const line of sumLines(sums)) printLine(printable(line))
  printLine(`Models have cost ${spokenMoney(Math.round(folder.spent * 1e6) / 1e6)}. Page: ${printable(page)}`)
}
