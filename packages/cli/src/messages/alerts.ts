import type { Alert, AlertChange, AlertKind } from '@tacho/contract/messages/alert.ts'
import { spentWords } from '@tacho/contract/runs/run-text.ts'
import { ALERT_KINDS } from '@tacho/contract/engine/words.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { agentIdOf } from '../engine/find-by-id.ts'
import { connected } from '../engine/connected.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { inEnvironment, wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { counted, printable, printJson, printLine, printTable, spokenNumber } from '../engine/output.ts'
import { durationMs } from '../engine/time-text.ts'

interface RuleOptions extends EnvironmentOptions {
  above?: number
  agent?: string
  window?: number
  hold?: number
  per?: 'month' | 'day'
  leastRuns?: number
  against?: 'last-week' | 'none'
}

interface ChangeOptions extends RuleOptions {
  name?: string
  allAgents?: true
}

const PERIODS = ['month', 'day']
const UNITS: Record<AlertKind, string> = {
  error_rate: '%',
  cost: '$',
  no_runs: '',
  approval_waiting: 'min',
  stalled_runs: 'runs',
  incomplete_runs: 'runs',
  share_failures: '%',
  budget: '$',
}

export function addAlerts(alerts: Command): void {
  inEnvironment(alerts.command('list').description('list alerts and budgets with their status')).action(list)

  withRule(inEnvironment(alerts.command('create <kind> <name>').description('create an alert or a budget')))
    .addHelpText(
      'after',
      `
Kinds: ${ALERT_KINDS.join(', ')}; docs/alerts.md says what each measures. Webhooks of the environment that subscribe to
alerts get its messages: see \`tacho webhooks create\`.

Examples:
  tacho alerts create error_rate "Many runs fail" --above 20
  tacho alerts create approval_waiting "Refunds wait" --above 10 --agent support --hold 1m
  tacho alerts create cost "Cost doubled" --above 200 --against last-week --least-runs 20
  tacho alerts create share_failures "A new prompt fails" --above 20 --least-runs 20
  tacho alerts create no_runs "Nothing happens" --window 30m
  tacho alerts create budget "October" --above 500 --per month`,
    )
    .action(create)

  withRule(inEnvironment(alerts.command('change <alertId>').description('change an alert; its kind never changes')))
    .option('--name <name>', 'another name')
    .addOption(new Option('--all-agents', 'no longer one agent only').conflicts('agent'))
    .addHelpText(
      'after',
      '\nA budget with another amount, agent or period starts again.\n\nExamples:\n  tacho alerts change 01a2… --above 25 --hold 10m',
    )
    .action(change)

  inEnvironment(alerts.command('test <alertId>').description('send its message to its webhooks now, as a test')).action(
    test,
  )
  inEnvironment(alerts.command('remove <alertId>').description('remove an alert')).action(remove)
}

function withRule(command: Command): Command {
  return command
    .option(
      '--above <number>',
      'fires above this: percent, US dollars, minutes or runs; of a budget, the amount',
      parseAbove,
    )
    .option('--agent <agent>', 'only this agent: its name, its external id or its internal id')
    .option('--window <duration>', 'how far back it looks, such as 30m or 24h; default 1h', parseMinutes)
    .option(
      '--hold <duration>',
      'how long the condition must hold, such as 0m or 10m; default 5m, of share_failures 0m',
      parseMinutes,
    )
    .option(
      '--least-runs <number>',
      'of error_rate, cost and share_failures: with fewer ended runs nothing is measured; default 5, of cost 1',
      wholeNumber(1_000_000),
    )
    .addOption(
      new Option(
        '--against <time>',
        'of error_rate and cost: --above is percent of the same hours a week before, 200 for twice as much; none: the value itself',
      ).choices(['last-week', 'none']),
    )
    .addOption(new Option('--per <period>', 'of a budget').choices(PERIODS))
}

function parseAbove(text: string): number {
  if (/^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a number such as 20 or 0.5.')
}

function parseMinutes(text: string): number {
  const minutes = (durationMs(text) ?? Number.NaN) / 60_000
  if (Number.isInteger(minutes)) return minutes
  throw new InvalidArgumentError('It must be whole minutes such as 10m, 2h or 1d.')
}

async function list(options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { items } = await client.listAlerts({ params: { environmentId } })
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'NAME' },
      { title: 'KIND' },
      { title: 'ABOVE', align: 'right' },
      { title: 'VALUE', align: 'right' },
      { title: 'STATUS', as: 'word' },
      { title: 'SINCE', as: 'time' },
      { title: 'CHECKED', as: 'time', isOptional: true },
    ],
    items.map((alert) =>
      alert.damaged
        ? [alert.id, '', '', '', '', 'damaged', alert.since, '']
        : [
            alert.id,
            alert.name,
            alert.kind,
            alert.kind === 'no_runs' ? '' : measured(alert, alert.threshold),
            alert.value === null ? '' : spentWords(alert.value, alert.unpricedCalls, (value) => measured(alert, value)),
            alert.kind === 'budget' ? toldText(alert) : alert.status,
            alert.since,
            alert.checkedAt ?? '',
          ],
    ),
    'No alerts. `tacho alerts create --help` shows how to make one.',
  )
  for (const { name, comparison } of items) if (comparison) printLine(`${name}: ${comparison}`)
}

const toldText = ({ percentTold, unpricedCalls }: Alert): string =>
  `${unpricedCalls > 0 ? 'at least ' : ''}${percentTold} % told`

function measured({ kind, against }: Alert, value: number): string {
  if (against !== null) return `${spokenNumber(Math.round(value))} % of last week`
  const digits = UNITS[kind] === '%' ? 10 : 1e6
  const [unit, shown] = [UNITS[kind], spokenNumber(Math.round(value * digits) / digits)]
  return unit === '$' ? `$${shown}` : `${shown} ${unit}`.trimEnd()
}

async function create(kind: string, name: string, options: RuleOptions): Promise<void> {
  const known = ALERT_KINDS.find((one) => one === kind)
  if (known === undefined)
    throw wrongUsage(`Unknown kind ${JSON.stringify(kind)}: choose from ${ALERT_KINDS.join(', ')}.`)
  const { above } = options
  if (above === undefined && known !== 'no_runs') throw wrongUsage(`Set --above for ${known}.`)
  const { client, environmentId } = await connected(options)
  const body = { name, kind: known, threshold: above ?? 0, ...(await ruleOf(client, environmentId, options)) }
  printAlert(await client.createAlert({ params: { environmentId }, body }), 'created', options)
}

async function change(alertId: string, options: ChangeOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { name, above, allAgents } = options
  const body: AlertChange = {
    ...(name !== undefined && { name }),
    ...(above !== undefined && { threshold: above }),
    ...(allAgents && { agentId: null }),
    ...(await ruleOf(client, environmentId, options)),
  }
  if (Object.keys(body).length === 0)
    throw wrongUsage('Nothing to change: `tacho alerts change --help` shows what can.')
  printAlert(await client.changeAlert({ params: { environmentId, alertId }, body }), 'changed', options)
}

async function ruleOf(
  client: OperatorClient,
  environmentId: string,
  { agent, window, hold, per, leastRuns, against }: RuleOptions,
) {
  return {
    ...(agent !== undefined && { agentId: await agentIdOf(client, environmentId, agent) }),
    ...(window !== undefined && { windowMinutes: window }),
    ...(hold !== undefined && { holdMinutes: hold }),
    ...(leastRuns !== undefined && { leastRuns }),
    ...(against !== undefined && { against: against === 'none' ? null : ('last_week' as const) }),
    ...(per !== undefined && { period: per }),
  }
}

async function test(alertId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { webhooks } = await client.testAlert({ params: { environmentId, alertId } })
  if (options.json) return printJson({ webhooks })
  if (webhooks === 0) throw failed('No webhook of this environment subscribes to alerts: see `tacho webhooks create`.')
  printLine(`A test message goes to ${counted(webhooks, 'webhook')}.`)
}

async function remove(alertId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  printAlert(await client.removeAlert({ params: { environmentId, alertId } }), 'removed', options)
}

function printAlert(alert: Alert, done: string, { json }: EnvironmentOptions): void {
  if (json) return printJson(alert)
  printLine(`Alert ${printable(alert.name)} (${alert.id}) ${done}.`)
}
