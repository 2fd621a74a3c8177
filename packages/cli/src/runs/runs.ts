import { RUN_SORTS, type RunSort } from '@tacho/contract/engine/words.ts'
import { Option, type Command } from 'commander'
import {
  inEnvironment,
  mostOf,
  wholeNumber,
  withPages,
  type EnvironmentOptions,
  type PageOptions,
} from '../engine/options.ts'
import { runQuery, withRunFilters, type RunFilterOptions } from './filters.ts'
import type { GapsOptions } from './gaps.ts'
import type { ShowOptions } from './show.ts'
import { addViews, findView, queryOfView } from './views.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { zoneOption } from '../engine/period.ts'
import { failed } from '../engine/stop.ts'

interface ListOptions extends RunFilterOptions, PageOptions {
  view?: string
  order?: 'lowest' | 'highest'
  sort?: RunSort
}

interface ExportOptions extends EnvironmentOptions {
  html: string
  payloads?: true
}

const LISTED = 25
const GAPS_LISTED = 100

export function addRuns(runs: Command): void {
  withPages(
    withRunFilters(inEnvironment(runs.command('list').description('list runs, newest first or in another order'))),
    LISTED,
  )
    .addOption(
      new Option('--sort <order>', 'newest, or the greatest first; then only runs that ended').choices([...RUN_SORTS]),
    )
    .addOption(new Option('--order <order>', 'by the mean of the score in --score').choices(['lowest', 'highest']))
    .option('--view <name>', 'the filters of a saved view; filters given here take precedence')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho runs list\n  tacho runs list --environment acme/production --status FAILED --from 24h\n  tacho runs list --errors --tool refund --min-cost 0.25\n  tacho runs list --session chat-4711 --all --json\n  tacho runs list --search order-47\n  tacho runs list --score "accuracy<0.5" --order lowest\n  tacho runs list --sort cost --from 7d\n  tacho runs list --view "Failed refunds"',
    )
    .action(list)

  addViews(runs.command('views').description('saved views of the list of runs'))

  inEnvironment(
    runs.command('show [runId]').description('show what a run did, step by step: the newest run, or one by its id'),
  )
    .option('--full', 'also print the payload of every event')
    .option('--story', 'also what was said, the output of commands, and edits as differences')
    .option('--failed', 'only errors, failed calls and steps, blocked calls and failed outcomes')
    .option('--stack', 'only the error that ended it, with its causes and its stack')
    .option('--tail <number>', 'only the last steps', wholeNumber(1_000_000))
    .option('--type <eventType>', 'only events of this type')
    .option('--search <text>', 'only events whose label contains the text, in any case')
    .addOption(
      new Option('--grep <text>', 'only events whose label or payload contains the text, in any case').conflicts([
        'search',
        'type',
        'tail',
      ]),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  tacho runs show\n  tacho runs show order-4711\n  tacho runs show --story\n  tacho runs show order-4711 --failed\n  tacho runs show order-4711 --stack\n  tacho runs show order-4711 --type TOOL_CALL --tail 5 --full\n  tacho runs show order-4711 --grep "card declined"\n  tacho runs show order-4711 --full --json\n\nThe beginning of an id is enough. On a terminal, long output goes through $PAGER (default less; PAGER=cat for none).',
    )
    .action(show)

  withPages(
    inEnvironment(runs.command('gaps').description('which clients or agents lose events, how many and why')),
    GAPS_LISTED,
  )
    .addOption(new Option('--by <key>', 'what to sum up by').choices(['client', 'agent']).default('client'))
    .option('--agent <agent>', 'runs of one agent: its name, its external id or its internal id')
    .option('--from <when>', 'runs started since: a time, or a duration ago', '7d')
    .option('--to <when>', 'runs started before: a time, or a duration ago; default: now')
    .addOption(zoneOption())
    .addHelpText(
      'after',
      `
Counts are of runs in which events are missing: MISSING of the events that were recorded in them. The greatest loss comes
first. \`tacho runs list --gaps\` lists these runs.

Examples:
  tacho runs gaps
  tacho runs gaps --agent support-bot --from 24h
  tacho runs gaps --by agent --from 30d --json`,
    )
    .action(gaps)

  inEnvironment(runs.command('export <runId>').description('write a run into a file that opens without Tacho'))
    .requiredOption('--html <file>', 'HTML file to write: one page that opens offline in any browser')
    .option('--payloads', 'also write the payloads of the events')
    .addHelpText(
      'after',
      `
The page has outcome, usage, issues, approvals and timeline. It has no script and loads nothing, so you can attach it to a
ticket. Without --payloads it has labels and times, not what people and models wrote. An existing file is never overwritten.

Examples:
  tacho runs export order-4711 --html order-4711.html
  tacho runs export order-4711 --html order-4711.html --payloads`,
    )
    .action(exportOne)

  inEnvironment(runs.command('pin <runId>').description('keep a run: retention never removes it')).action(
    (runId: string, options: EnvironmentOptions) => pinOne('pinRun', runId, options),
  )
  inEnvironment(runs.command('unpin <runId>').description('let retention remove a run again')).action(
    (runId: string, options: EnvironmentOptions) => pinOne('unpinRun', runId, options),
  )

  inEnvironment(runs.command('follow [runId]').description('show events live; without a run: new runs'))
    .addHelpText(
      'after',
      `
With a run, the command ends after the last event of the run. Otherwise press Ctrl-C. --json prints JSON lines.

Examples:
  tacho runs follow order-4711
  tacho runs follow --environment acme/production --json`,
    )
    .action(follow)
}

async function list(options: ListOptions): Promise<void> {
  const now = Date.now()
  const runFilters = runQuery(options, now)
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const limit = mostOf(options)
  const view = options.view === undefined ? {} : queryOfView(await findView(client, environmentId, options.view), now)
  // An agent given on the command line, under either name, replaces the agent of the view.
  const { agent: viewAgent, agentId, ...query } = { ...view, ...runFilters }
  const agent = options.agent ?? agentId ?? viewAgent
  const { listRuns } = await import('./list.ts')
  const { printPeriod } = await import('../engine/period.ts')
  if (!options.json) printPeriod(query, options)
  await listRuns(
    client,
    environmentId,
    { query: { ...query, scoreOrder: options.order, sort: options.sort }, agent, limit },
    options.json === true,
  )
}

async function show(runId: string | undefined, options: ShowOptions & EnvironmentOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const place = { environmentId, runId: runId ?? (await newestRun(client, environmentId)) }
  const { showRun } = await import('./show.ts')
  await showRun(client, place, options)
}

async function gaps(options: GapsOptions): Promise<void> {
  const { printGaps } = await import('./gaps.ts')
  await printGaps(options)
}

async function exportOne(runId: string, options: ExportOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const { exportRun } = await import('./run-acts.ts')
  await exportRun(client, { environmentId, runId }, options)
}

async function newestRun(client: OperatorClient, environmentId: string): Promise<string> {
  const { items } = await client.listOperatorRuns({ params: { environmentId }, query: { limit: 1 } })
  if (items[0] !== undefined) return items[0].id
  throw failed('There are no runs in this environment yet. `tacho demo` records some in an environment of its own.')
}

async function pinOne(act: 'pinRun' | 'unpinRun', runId: string, options: EnvironmentOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const { pinRun } = await import('./run-acts.ts')
  await pinRun(client, { act, environmentId, runId }, options.json === true)
}

async function follow(runId: string | undefined, options: EnvironmentOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const asJson = options.json === true
  const { followRun, followRuns } = await import('./follow.ts')
  if (runId === undefined) await followRuns(client, environmentId, asJson)
  else await followRun(client, { environmentId, runId }, asJson)
}
