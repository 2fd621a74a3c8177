import type { Usage } from '@tacho/contract/run.ts'
import type { Command } from 'commander'
import { connect, inEnvironment, type EnvironmentOptions } from '../options.ts'
import { printJson, printLine, printTable, spokenNumber, type Column } from '../output.ts'
import { findEnvironment } from '../tenants.ts'
import { moment } from '../time-text.ts'

interface Options extends EnvironmentOptions {
  from: string
  to?: string
}

const COLUMNS: Column[] = [
  { title: 'HOUR' },
  { title: 'AGENT' },
  { title: 'MODEL' },
  ...['EVENTS', 'PROMPT', 'COMPLETION', 'TOTAL', 'COST'].map((title): Column => ({ title, align: 'right' })),
]

export function addUsage(program: Command): void {
  inEnvironment(program.command('usage').description('tokens and cost by hour, agent and model'))
    .option('--from <when>', 'a time, or a duration ago', '24h')
    .option('--to <when>', 'a time, or a duration ago; now when left out. At most 31 days after --from')
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
  const report = await client.readUsage({ params: { environmentId: environment.id }, query: { from, to } })
  if (options.json) return printJson({ from, to, ...report })
  if (report.items.length === 0) return printLine(`Nothing was recorded from ${from} to ${to}.`)
  const rows = report.items.map(({ hour, agent, model, events, usage: sums }) => [
    `${hour.slice(0, 13).replace('T', ' ')}:00`,
    agent.name,
    model,
    ...numbers(events, sums),
  ])
  printTable(COLUMNS, [...rows, ['Total', '', '', ...total(report.items)]])
}

function numbers(events: number, { promptTokens, completionTokens, totalTokens, cost }: Usage): string[] {
  return [events, promptTokens, completionTokens, totalTokens, cost].map(spokenNumber)
}

function total(items: { events: number; usage: Usage }[]): string[] {
  const sum = { events: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanos: 0 }
  for (const { events, usage: one } of items) {
    sum.events += events
    sum.promptTokens += one.promptTokens
    sum.completionTokens += one.completionTokens
    sum.totalTokens += one.totalTokens
    // Costs are whole 1e-9 units; as fractions they would not add up.
    sum.costNanos += Math.round(one.cost * 1e9)
  }
  return numbers(sum.events, { ...sum, cost: sum.costNanos / 1e9 })
}
