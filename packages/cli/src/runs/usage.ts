import { eachItem, taken } from '@tacho/client/items.ts'
import { number } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { UsageHour } from '@tacho/contract/runs/usage.ts'
import { tokenWords } from '@tacho/contract/runs/run-text.ts'
import { Option, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { inEnvironment, mostOf, withPages, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { currentLook } from '../engine/display.ts'
import { printEmpty, printJson, printMore, printTable, spokenCost, type Column } from '../engine/output.ts'
import { periodText, printPeriod, wholePeriodOf, zoneOption } from '../engine/period.ts'
import { localTime } from '../engine/time-text.ts'
import { isOfRuns, POINT_KEYS, pointColumns, pointQuery, pointRows, sumPoints, type PointKey } from './usage-points.ts'
import { totalOf, USAGE_COLUMNS, usageCells, usageRows, type UsageSum } from './usage-days.ts'

interface Options extends EnvironmentOptions, PageOptions {
  by?: PointKey | 'hour'
  from: string
  to?: string
  zone: string
  user?: string
  metadata?: string
}

const LIMIT = 1_000

const HOUR_COLUMNS: Column[] = [
  { title: 'HOUR' },
  { title: 'AGENT' },
  { title: 'MODEL' },
  { title: 'EVENTS', align: 'right', isOptional: true },
  { title: 'PROMPT', align: 'right' },
  { title: 'COMPLETION', align: 'right' },
  { title: 'COST', align: 'right' },
]

export function addUsage(command: Command): void {
  withPages(inEnvironment(command), LIMIT)
    .addOption(
      new Option('--by <key>', 'what to sum up by; hour: each hour, agent and model').choices([...POINT_KEYS, 'hour']),
    )
    .option('--user <id>', 'the sum of one end user; implies --by user')
    .option('--metadata <key>', 'the key of --by metadata, such as task; implies it')
    .option('--from <when>', 'a time, or a duration ago', '24h')
    .option('--to <when>', 'a time, or a duration ago; exclusive; default: now. By hour, at most 31 days after --from')
    .addOption(zoneOption())
    .addHelpText(
      'after',
      `
Days and months begin at midnight in the time zone of --zone. --to is exclusive, to the millisecond; only an hour with more
than ${number(LIMITS.usagePartEvents)} events, or whose events retention has deleted, counts as a whole where it begins.
Without --by, text is by day, and --json has every hour, agent and model. By agent, prompt version and month it shows
outcomes of runs; by agent and model also the latencies of model and tool calls that half and 95 percent stay within, and by
agent how long people waited: for the outcome of a run, and the agent for the decision of an approval.
By tool it shows calls, those that failed or that a policy held back, and their latencies; by session, user,
tag and metadata the most expensive first.

Examples:
  tacho usage --from 30d
  tacho usage --by model --from 7d
  tacho usage --by prompt-version --from 90d
  tacho usage --by tool --from 7d
  tacho usage --by session --limit 20
  tacho usage --user customer-7 --from 2026-11-01 --to 2026-12-01
  tacho usage --metadata task --from 30d
  tacho usage --by month --from 365d --json
  tacho usage --environment acme/production --from 7d --json
  tacho usage --by hour --from 2026-11-20 --to 2026-11-20T12:00:00Z`,
    )
    .action(usage)
}

async function usage(options: Options): Promise<void> {
  const { zone } = options
  const period = { ...wholePeriodOf(options), zone }
  const label = {
    ...(options.user !== undefined && { user: options.user }),
    ...(options.metadata !== undefined && { metadata: options.metadata }),
  }
  const by = options.by ?? (options.user ? 'user' : options.metadata ? 'metadata' : options.json ? 'hour' : 'day')
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  if (by === 'hour') {
    const { from, to } = period
    const query = { from, to, limit: LIMITS.operatorPageMax }
    return printHours(eachItem(client.readUsage, { params, query }), period, options)
  }
  const query = { ...period, limit: LIMITS.usagePointsPage, ...pointQuery(by), ...label }
  const points = eachItem(client.readUsagePoints, { params, query })
  if (by === 'day') return printDays(await sumPoints(points, { by, zone }), period, options)
  const isSorted = isOfRuns(by)
  const sums = await sumPoints(points, { by, zone }, isSorted ? mostOf(options) : undefined)
  const items = sums.slice(0, mostOf(options))
  const hasMore = items.length < sums.length
  if (options.json) return printJson({ ...period, items, hasMore })
  if (items.length === 0) return printNothing(period)
  printUsagePeriod(period)
  printTable(pointColumns(by), pointRows(by, items))
  printMore(hasMore)
}

function printDays(all: readonly UsageSum[], period: Period, options: Options): void {
  const sums = all.slice(0, mostOf(options))
  const hasMore = sums.length < all.length
  if (options.json) return printJson({ ...period, items: sums, hasMore })
  if (sums.length === 0) return printNothing(period)
  const total = usageCells(totalOf(sums, hasMore ? 'Total of these' : 'Total'))
  const { width } = currentLook()
  const rows = [...usageRows(sums), [...total, '']]
  printUsagePeriod(period)
  // A program that reads the output needs no bars.
  printTable(
    width === null ? USAGE_COLUMNS.slice(0, -1) : USAGE_COLUMNS,
    width === null ? rows.map((row) => row.slice(0, -1)) : rows,
  )
  printMore(hasMore)
}

interface Period {
  from: string
  to: string
  zone: string
}

async function printHours(hours: AsyncIterable<UsageHour>, period: Period, options: Options) {
  const { items, hasMore } = await taken(hours, mostOf(options))
  if (options.json) return printJson({ ...period, items, hasMore })
  if (items.length === 0) return printNothing(period)
  printUsagePeriod(period)
  printTable(
    HOUR_COLUMNS,
    items.map((each) => [
      localTime(each.hour, period.zone).slice(0, 16).replace('T', ' '),
      each.agent.name,
      each.model,
      number(each.events),
      ...[each.usage.promptTokens, each.usage.completionTokens].map((tokens) =>
        tokenWords(each.usage.totalTokens, () => number(tokens)),
      ),
      spokenCost(each),
    ]),
  )
  printMore(hasMore)
}

/** Without --from, the sums cover only one day. */
const printUsagePeriod = (period: Period): void => printPeriod(period, period, ' --from 30d shows more.')

function printNothing(period: Period): void {
  printEmpty(
    `Nothing was recorded in this time. ${periodText(period, period)}. \`tacho runs list\` shows the newest runs.`,
  )
}
