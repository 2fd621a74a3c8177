import { eachItem, taken } from '@tacho/client/items.ts'
import type { Score, ScoreAgreement, ScoreSums, ScoreSumsQuery } from '@tacho/contract/runs/score.ts'
import { kappaText, meanText, scoreText, typedScore } from '@tacho/contract/runs/run-text.ts'
import { Option, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { known } from '../engine/find-by-id.ts'
import { inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { printable, printEmpty, printJson, printLine, printTable, spokenNumber, type Column } from '../engine/output.ts'
import { printPeriod, wholePeriodOf, zoneOption, type ZoneOptions } from '../engine/period.ts'

interface GiveOptions extends EnvironmentOptions {
  comment?: string
  event?: string
}

interface SumsOptions extends EnvironmentOptions, ZoneOptions {
  from: string
  to?: string
  by?: NonNullable<ScoreSumsQuery['by']>
}

const MOST = 1_000

export function addScores(scores: Command): void {
  inEnvironment(scores.command('list <runId>').description('list what was said of a run and its steps'))
    .option('--no-blind', 'show also what others judged before you have judged the same')
    .action(list)

  inEnvironment(
    scores
      .command('give <runId> <name> <value>')
      .description('judge a run or a step; it replaces your score of this name'),
  )
    .option('--comment <text>', 'why')
    .option('--event <eventId>', 'the step that you judge; default: the whole run')
    .addHelpText(
      'after',
      `
The value is a number, yes or no (also true, false, good, bad), or any other word as a category. Put -- before a negative
number.

Examples:
  tacho scores give order-4711 quality no --comment "It promised a refund"
  tacho scores give order-4711 accuracy 0.5 --event evt-9
  tacho runs list --unscored quality --share 10`,
    )
    .action(give)

  inEnvironment(
    scores
      .command('withdraw <runId> <scoreId>')
      .description('withdraw your score; as admin also that of another person'),
  ).action(withdraw)

  inEnvironment(scores.command('names').description('list the names that scores have')).action(names)

  inEnvironment(scores.command('sums').description('sum up the scores of a time range'))
    .option('--from <when>', 'scores given since: a time, or a duration ago', '7d')
    .option('--to <when>', 'scores given before: a time, or a duration ago; default: now')
    .addOption(zoneOption())
    .addOption(new Option('--by <group>', 'also by agent, prompt version or author').choices(GROUPS))
    .action(sums)

  inEnvironment(
    scores
      .command('agreement <name>')
      .description(
        "compare what each two authors judged of the same runs: Cohen's kappa, and the runs where they differ",
      ),
  )
    .option('--from <when>', 'scores given since: a time, or a duration ago', '30d')
    .option('--to <when>', 'scores given before: a time, or a duration ago; default: now')
    .addOption(zoneOption())
    .action(agreement)
}

async function list(runId: string, options: EnvironmentOptions & { blind: boolean }): Promise<void> {
  const { client, environmentId } = await connected(options)
  const blind = options.blind ? 'true' : 'false'
  let hidden = 0
  const readPage = async (input: Parameters<typeof client.listScores>[0]) => {
    const page = await client.listScores(input)
    hidden = page.hidden
    return page
  }
  const read = (id: string) =>
    taken(eachItem(readPage, { params: { environmentId, runId: id }, query: { limit: 200, blind } }), MOST)
  const { items } = await known('run', runId, { client, environmentId }, read)
  if (options.json) return printJson({ items, hidden })
  if (hidden > 0)
    process.stderr.write(`${hidden} of others are hidden until you have judged the same. --no-blind shows them.\n`)
  const empty = 'This run has no scores. Give one with `tacho scores give`.' as const
  printTable(COLUMNS, items.map(cells), empty)
}

const COLUMNS: Column[] = [
  { title: 'GIVEN', as: 'time' },
  { title: 'NAME' },
  { title: 'VALUE' },
  { title: 'BY' },
  { title: 'STEP', isOptional: true },
  { title: 'COMMENT', as: 'text' },
  { title: 'ID', isOptional: true },
]

function cells({ scoredAt, name, value, author, eventId, comment, id, importedAt }: Score): string[] {
  const by = author.name === '' ? author.kind : author.name
  return [
    scoredAt,
    name,
    scoreText(value),
    importedAt === null ? by : `${by} (imported)`,
    eventId ?? '',
    comment ?? '',
    id,
  ]
}

async function give(runId: string, name: string, text: string, options: GiveOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { comment = null, event = null } = options
  const body = { name, value: typedScore(text), comment, eventId: event }
  const judge = (id: string) => client.giveScore({ params: { environmentId, runId: id }, body })
  const score = await known('run', runId, { client, environmentId }, judge)
  if (options.json) return printJson(score)
  printLine(`${printable(score.name)} of ${printable(runId)} is ${printable(scoreText(score.value))}.`)
}

async function withdraw(runId: string, scoreId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const score = await client.withdrawScore({ params: { environmentId, runId, scoreId } })
  if (options.json) return printJson(score)
  printLine(`${printable(score.name)} of ${printable(runId)} is withdrawn.`)
}

async function names(options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { items } = await client.listScoreNames({ params: { environmentId } })
  if (options.json) return printJson({ items })
  const columns: Column[] = [{ title: 'NAME' }, { title: 'KIND', as: 'word' }, { title: 'LAST GIVEN', as: 'time' }]
  const rows = items.map(({ name, kind, lastAt }) => [name, kind, lastAt])
  printTable(columns, rows, 'There are no scores yet. `tacho scores give` gives one.')
}

async function sums(options: SumsOptions): Promise<void> {
  const period = wholePeriodOf(options)
  const { client, environmentId } = await connected(options)
  const query = { ...period, by: options.by }
  const scoreSums = await client.readScoreSums({ params: { environmentId }, query })
  if (options.json) return printJson(scoreSums)
  const rows = scoreSums.items.flatMap((item) => sumCells(item, options.by !== undefined))
  if (rows.length === 0) return printEmpty('No scores were given in this time. `tacho scores give` gives one.')
  printPeriod(period, options)
  printTable(sumColumns(options.by), rows)
  if (scoreSums.isCut)
    process.stderr.write('Not all scores of this time are summed up: the latest, and the names with most runs.\n')
}

async function agreement(name: string, options: SumsOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const period = wholePeriodOf(options)
  const query = { name, ...period }
  const scoreAgreement = await client.readScoreAgreement({ params: { environmentId }, query })
  if (options.json) return printJson(scoreAgreement)
  if (scoreAgreement.items.length === 0)
    return printEmpty('No two authors judged the same run in this time. `tacho scores give` gives a score.')
  printPeriod(period, options)
  for (const pair of scoreAgreement.items) printPair(pair)
  if (scoreAgreement.isCut) process.stderr.write('Not all scores of this time are compared: the latest.\n')
}

function printPair(pair: ScoreAgreement['items'][number]): void {
  const [one, other] = [pair.one, pair.other].map(({ name, kind }) => printable(name === '' ? kind : name))
  printLine(`${one} and ${other}: ${kappaText(pair)}`)
  for (const { runId, eventId, one: first, other: second } of pair.differences) {
    const step = eventId === null ? '' : ` step ${printable(eventId)}`
    printLine(`  ${printable(runId)}${step}: ${printable(scoreText(first))}, ${printable(scoreText(second))}`)
  }
  const more = pair.both - pair.same - pair.hidden - pair.differences.length
  if (more > 0) printLine(`  and ${spokenNumber(more)} more`)
  if (pair.hidden > 0) printLine(`  ${spokenNumber(pair.hidden)} of runs that you have not judged are not shown.`)
}

const GROUPS = ['agent', 'promptVersion', 'author'] as const
const HEADS = { agent: 'AGENT', promptVersion: 'PROMPT VERSION', author: 'AUTHOR' } as const

const sumColumns = (by: SumsOptions['by']): Column[] => [
  ...(by === undefined ? [] : [{ title: HEADS[by] }]),
  { title: 'NAME' },
  { title: by === 'author' ? 'SCORES' : 'RUNS', align: 'right' },
  { title: 'MEAN', align: 'right' },
  { title: 'CATEGORIES', as: 'text' },
]

function sumCells({ key, name, scores }: ScoreSums['items'][number], isGrouped: boolean): string[][] {
  return scores.map((sum) => [
    ...(isGrouped ? [name || key] : []),
    sum.name,
    spokenNumber(sum.runs),
    meanText(sum),
    sum.categories.map(({ value, runs }) => `${value} ${runs}`).join(', '),
  ])
}
