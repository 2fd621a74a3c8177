import { eachItem } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Usage } from '@tacho/contract/run.ts'
import type { Command } from 'commander'
import { connect, inEnvironment, wholeNumber, type EnvironmentOptions } from '../settings/options.ts'
import { printJson, printLine, printTable, spokenNumber, type Column } from '../terminal/output.ts'
import { taken } from '../calls/taken.ts'
import { findEnvironment } from '../calls/tenants.ts'
import { moment } from '../terminal/time-text.ts'

interface Options extends EnvironmentOptions {
  from: string
  to?: string
  limit: number
  all?: true
}

const LIMIT = 1_000
const MOST = 1_000_000

const COLUMNS: Column[] = [
  { title: 'HOUR' },
  { title: 'AGENT' },
  { title: 'MODEL' },
  ...['EVENTS', 'PROMPT', 'COMPLETION', 'TOTAL', 'COST', 'ESTIMATED'].map((title): Column => ({
    title,
    align: 'right',
  })),
]

export function addUsage(command: Command): void {
  inEnvironment(command)
    .option('--from <when>', 'a time, or a duration ago', '24h')
    .option('--to <when>', 'a time, or a duration ago; default: now. At most 31 days after --from')
    .option('--limit <number>', `maximum rows to show (default ${LIMIT})`, wholeNumber(MOST), LIMIT)
    .option('--all', 'show all, ignoring --limit')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho usage\n  tacho usage --environment acme/production --from 7d --json\n  tacho usage --from 2026-11-01 --to 2026-11-20T12:00:00Z',
    )
    .action(usage)
}

async function usage(options: Options): Promise<void> {
  const now = Date.now()
  const from = moment('--from', options.from, -1, now)
  const to = options.to === undefined ? new Date(now).toISOString() : moment('--to', options.to, -1, now)
  const client = connect(options)
  const environment = await findEnvironment(client, options.environment)
  const query = { from, to, limit: LIMITS.operatorPageMax }
  const hours = eachItem(client.readUsage, { params: { environmentId: environment.id }, query })
  const { items, hasMore } = await taken(hours, options.all ? Number.POSITIVE_INFINITY : options.limit)
  if (options.json) return printJson({ from, to, items, hasMore })
  if (items.length === 0) return printLine(`Nothing was recorded from ${from} to ${to}.`)
  const rows = items.map(({ hour, agent, model, events, usage: sums, estimatedCost }) => [
    `${hour.slice(0, 13).replace('T', ' ')}:00`,
    agent.name,
    model,
    ...numbers(events, sums),
    estimate(estimatedCost),
  ])
  printTable(COLUMNS, [...rows, [hasMore ? 'Total of these' : 'Total', '', '', ...total(items)]])
  if (hasMore) process.stderr.write(`There are more: raise --limit, or use --all.\n`)
}

function numbers(events: number, { promptTokens, completionTokens, totalTokens, cost }: Usage): string[] {
  return [events, promptTokens, completionTokens, totalTokens, cost].map(spokenNumber)
}

/** What the calls without a cost probably cost. */
function estimate(cost: number | null): string {
  return cost === null ? '' : spokenNumber(cost)
}

function total(items: { events: number; usage: Usage; estimatedCost: number | null }[]): string[] {
  const sum = { events: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0, estimatedNanos: 0 }
  for (const { events, usage: one, estimatedCost } of items) {
    sum.events += events
    sum.promptTokens += one.promptTokens
    sum.completionTokens += one.completionTokens
    sum.totalTokens += one.totalTokens
    // Sum whole units of 1e-9: sums of fractions would be inexact.
    sum.costNanos += Math.round(one.cost * 1e9)
    sum.estimatedNanos += Math.round((estimatedCost ?? 0) * 1e9)
  }
  const isEstimated = items.some(({ estimatedCost }) => estimatedCost !== null)
  const estimated = estimate(isEstimated ? sum.estimatedNanos / 1e9 : null)
  return [...numbers(sum.events, { ...sum, cost: sum.costNanos / 1e9 }), estimated]
}
