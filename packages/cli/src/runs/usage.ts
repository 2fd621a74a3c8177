import { eachItem, taken } from '@tacho/client/items.ts'
import { number } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { UsageHour } from '@tacho/contract/runs/usage.ts'
import { tokenWords } from '@tacho/contract/runs/run-text.ts'
import { Option, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { inEnvironment, mostOf, withPages, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { currentLook } from '../engine/display.ts'
import {
  faint,
  printEmpty,
  printJson,
  printLine,
  printMore,
  printTable,
  spokenCost,
  type Column,
} from '../engine/output.ts'
import { localTime, moment, parseZone } from '../engine/time-text.ts'
import { isOfRuns, POINT_KEYS, pointColumns, pointQuery, pointRows, sumPoints, type PointKey } from './usage-points.ts'
import { totalOf, USAGE_COLUMNS, usageCells, usageRows, usageSummer } from './usage-days.ts'

interface Options extends EnvironmentOptions, PageOptions {
  by?: PointKey | 'day' | 'hour'
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
      new Option('--by <key>', 'what to sum up by; hour: each hour, agent and model').choices([
        ...POINT_KEYS,
        'day',
        'hour',
      ]),
    )
    .option('--user <id>', 'the sum of one end user; implies --by user')
    .option('--metadata <key>', 'the key of --by metadata, such as task; implies it')
    .option('--from <when>', 'a time, or a duration ago', '24h')
    .option(
      '--to <when>',
      'a time, or a duration ago; exclusive; default: now. By day and hour, at most 31 days after --from',
    )
    .option(
      '--zone <name>',
      'time zone of days, months, and of times without one, such as Europe/Berlin',
      parseZone,
      'UTC',
    )
    .addHelpText(
      'after',
      `
Days and months begin at midnight in the time zone. --to is exclusive; sums are kept by hour, so an hour in which the time
begins or ends counts as a whole.
Without --by, text is by day, and --json has every hour, agent and model. By agent, prompt version and month it shows
outcomes of runs; by agent and model also the latencies of model and tool calls that half and 95 percent stay within.
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
  const now = Date.now()
  const { zone } = options
  const from = moment('--from', options.from, -1, now, zone)
  const to = options.to === undefined ? new Date(now).toISOString() : moment('--to', options.to, -1, now, zone)
  const period = { from, to, zone }
  const label = {
    ...(options.user !== undefined && { user: options.user }),
    ...(options.metadata !== undefined && { metadata: options.metadata }),
  }
  const by = options.by ?? (options.user ? 'user' : options.metadata ? 'metadata' : options.json ? 'hour' : 'day')
  const { client, environmentId } = await connected(options)
  const query = { from, to, limit: LIMITS.operatorPageMax }
  const hours = eachItem(client.readUsage, { params: { environmentId }, query })
  if (by === 'hour') return printHours(hours, period, options)
  if (by !== 'day') {
    const found = {
      params: { environmentId },
      query: { ...period, limit: LIMITS.usagePointsPage, ...pointQuery(by), ...label },
    }
    const isSorted = isOfRuns(by)
    const sums = await sumPoints(
      eachItem(client.readUsagePoints, found),
      { by, zone },
      isSorted ? mostOf(options) : undefined,
    )
    const items = sums.slice(0, mostOf(options))
    const hasMore = items.length < sums.length
    if (options.json) return printJson({ ...period, items, hasMore })
    if (items.length === 0) return printNothing(period)
    printPeriod(period)
    printTable(pointColumns(by), pointRows(by, items))
    return printMore(hasMore)
  }
  const summer = usageSummer(zone)
  for await (const hour of hours) summer.add(hour)
  const all = summer.sums()
  const sums = all.slice(0, mostOf(options))
  const hasMore = sums.length < all.length
  if (options.json) return printJson({ ...period, items: sums, hasMore })
  if (sums.length === 0) return printNothing(period)
  const total = usageCells(totalOf(sums, hasMore ? 'Total of these' : 'Total'))
  const { width } = currentLook()
  const rows = [...usageRows(sums), [...total, '']]
  printPeriod(period)
  // A program needs no bar.
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
  printPeriod(period)
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

/** On a terminal; a program that counts lines of stdout finds none. Without --from, the sums cover only one day. */
function printPeriod({ from, to, zone }: Period): void {
  const [start, end] = [from, to].map((time) => localTime(time, zone).slice(0, 16).replace('T', ' '))
  const text = `From ${start} to ${end} ${zone}. --from 30d shows more.`
  if (currentLook().width === null) process.stderr.write(`${text}\n`)
  else printLine(faint(text))
}

function printNothing({ from, to }: Period): void {
  printEmpty(`Nothing was recorded from ${from} to ${to}. \`tacho runs list\` shows the newest runs.`)
}
