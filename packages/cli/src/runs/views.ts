/** `tacho runs views`: the saved views of an environment, and the query of a view. */
import type { RunFilter } from '@tacho/contract/runs/operator-run.ts'
import type { RunColumn, RunView } from '@tacho/contract/runs/run-view.ts'
import { RUN_COLUMNS } from '@tacho/contract/engine/words.ts'
import { InvalidArgumentError, type Command } from 'commander'
import type { OperatorClient } from '../engine/operator-client.ts'
import { inEnvironment, wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { wrongUsage } from '../engine/stop.ts'
import { printable, printJson, printLine, printTable } from '../engine/output.ts'

interface CreateOptions extends EnvironmentOptions {
  filter: RunFilter
  lastHours?: number
  columns?: RunColumn[]
}

const HOUR_MS = 3_600_000

export function addViews(views: Command): void {
  inEnvironment(views.command('list').description('list saved views')).action(list)

  inEnvironment(views.command('create <name>').description('save a view: filters and columns with a name'))
    .option('--filter <json>', 'filters of the list of runs, as a JSON object in the names of the API', parseFilter, {})
    .option('--last-hours <number>', 'runs started in so many hours before the view is opened', wholeNumber(8_784))
    .option('--columns <names>', `columns, separated by commas: ${RUN_COLUMNS.join(', ')}`, parseColumns)
    .addHelpText(
      'after',
      `
Example:
  tacho runs views create "Failed refunds" --filter '{"status":"FAILED","tool":"refund"}' --last-hours 24`,
    )
    .action(create)

  inEnvironment(views.command('rename <view> <name>').description('rename a view, found by its name or id')).action(
    rename,
  )
  inEnvironment(views.command('remove <view>').description('remove a view, found by its name or id')).action(remove)
}

function parseFilter(text: string): RunFilter {
  try {
    const value: unknown = JSON.parse(text)
    // The server checks the filters.
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {}
  throw new InvalidArgumentError('It must be a JSON object such as {"status":"FAILED"}.')
}

function parseColumns(text: string): RunColumn[] {
  return text.split(',').map((name) => {
    const column = RUN_COLUMNS.find((known) => known === name.trim())
    if (column === undefined) throw new InvalidArgumentError(`Each must be one of ${RUN_COLUMNS.join(', ')}.`)
    return column
  })
}

async function viewsOf(client: OperatorClient, environmentId: string): Promise<RunView[]> {
  const { allItems } = await import('@tacho/client/items.ts')
  return allItems(client.listRunViews, { params: { environmentId } })
}

/** The view with this name or id. */
export async function findView(client: OperatorClient, environmentId: string, viewName: string): Promise<RunView> {
  const items = await viewsOf(client, environmentId)
  const view = items.find(({ name }) => name === viewName) ?? items.find(({ id }) => id === viewName.toLowerCase())
  if (view !== undefined) return view
  throw wrongUsage(`Unknown view "${printable(viewName)}": \`tacho runs views list\` shows all.`)
}

export function queryOfView({ query, lastHours }: RunView, now: number): RunFilter {
  if (lastHours === null || query.from !== undefined) return query
  return { ...query, from: new Date(now - lastHours * HOUR_MS).toISOString() }
}

async function list(options: EnvironmentOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const items = await viewsOf(client, environmentId)
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'NAME' },
      { title: 'FILTERS' },
      { title: 'LAST HOURS' },
      { title: 'COLUMNS', isOptional: true },
    ],
    items.map(({ id, name, query, lastHours, columns }) => [
      id,
      name,
      Object.entries(query)
        .map(([filter, value]) => `${filter}=${value}`)
        .join(' '),
      String(lastHours ?? ''),
      columns.join(', '),
    ]),
    'No saved views. `tacho runs views create` makes one.',
  )
}

async function create(name: string, { filter, lastHours, columns, ...options }: CreateOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const body = { name, query: filter, ...(lastHours !== undefined && { lastHours }), ...(columns && { columns }) }
  const view = await client.createRunView({ params: { environmentId }, body })
  if (options.json) printJson(view)
  else printLine(`View ${view.id} is saved as ${printable(view.name)}.`)
}

async function rename(viewName: string, name: string, options: EnvironmentOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const { id: runViewId } = await findView(client, environmentId, viewName)
  const view = await client.changeRunView({ params: { environmentId, runViewId }, body: { name } })
  if (options.json) printJson(view)
  else printLine(`View ${view.id} is now named ${printable(view.name)}.`)
}

async function remove(viewName: string, options: EnvironmentOptions): Promise<void> {
  const { connected } = await import('../engine/connected.ts')
  const { client, environmentId } = await connected(options)
  const { id: runViewId } = await findView(client, environmentId, viewName)
  const view = await client.removeRunView({ params: { environmentId, runViewId } })
  if (options.json) printJson(view)
  else printLine(`View ${printable(view.name)} was removed.`)
}
