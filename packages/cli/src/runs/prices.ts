import type { NewPrice } from '@tacho/contract/runs/price.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { findWorkspace } from '../tenants/tenants.ts'
import { asOperator, connect, inEnvironment, type EnvironmentOptions, type ServerOptions } from '../engine/options.ts'
import { printable, printJson, printLine, printTable, spokenNumber, type Column } from '../engine/output.ts'
import { periodText, wholePeriodOf, zoneOption, type ZoneOptions } from '../engine/period.ts'

interface WorkspaceOptions extends ServerOptions {
  workspace?: string
}

interface SetOptions extends WorkspaceOptions {
  input: number
  output: number
  cacheRead?: number
  cacheWrite?: number
  reasoning?: number
  audioInput?: number
  cachedAudio?: number
  audioOutput?: number
  imageInput?: number
  cachedImage?: number
  imageOutput?: number
  call?: number
}

interface UnknownOptions extends EnvironmentOptions, ZoneOptions {
  from: string
  to?: string
}

const inWorkspace = (command: Command): Command =>
  asOperator(command).option('-w, --workspace <workspace>', 'name or id; optional if there is only one')

const right = (title: string): Column => ({ title, align: 'right' })

export function addPrices(prices: Command): void {
  inWorkspace(prices.command('list').description('list the prices that the workspace has set')).action(list)

  inWorkspace(prices.command('set <model>').description('set what a million tokens of a model cost, in US dollars'))
    .requiredOption('--input <price>', 'input tokens', parsePrice)
    .requiredOption('--output <price>', 'output tokens', parsePrice)
    .option('--cache-read <price>', 'input tokens read from a cache; default: as input', parsePrice)
    .option('--cache-write <price>', 'input tokens written to a cache; default: as input', parsePrice)
    .option('--reasoning <price>', 'reasoning tokens; default: as output', parsePrice)
    .option('--audio-input <price>', `audio tokens of the input; ${AS_TEXT}`, parsePrice)
    .option('--cached-audio <price>', `audio tokens read from a cache; ${AS_TEXT}`, parsePrice)
    .option('--audio-output <price>', `audio tokens of the output; ${AS_TEXT}`, parsePrice)
    .option('--image-input <price>', `image tokens of the input; ${AS_TEXT}`, parsePrice)
    .option('--cached-image <price>', `image tokens read from a cache; ${AS_TEXT}`, parsePrice)
    .option('--image-output <price>', `image tokens of the output; ${AS_TEXT}`, parsePrice)
    .option('--call <price>', 'each call, besides its tokens', parsePrice)
    .addHelpText(
      'after',
      `
Estimates use it at once, also of earlier calls. What clients send as cost never changes. docs/cost.md explains more.

Example:
  tacho prices set our-llama --input 0.20 --output 0.60 --cache-read 0.05`,
    )
    .action(set)

  inWorkspace(prices.command('remove <model>').description('use the price table again for a model')).action(remove)

  inEnvironment(prices.command('unknown').description('list models whose calls have neither a cost nor a price'))
    // The same period as the default of `tacho usage`.
    .option('--from <when>', 'a time, or a duration ago', '24h')
    .option('--to <when>', 'a time, or a duration ago; default: now')
    .addOption(zoneOption())
    .action(unknown)
}

const AS_TEXT = 'default: as text, and costs are "at least"'
const MEDIA = ['audioInput', 'cachedAudio', 'audioOutput', 'imageInput', 'cachedImage', 'imageOutput'] as const
const OPTIONAL = ['cacheRead', 'cacheWrite', 'reasoning', ...MEDIA, 'call'] as const

function parsePrice(text: string): number {
  const price = Number(text)
  if (text.trim() === '' || !(price >= 0 && price <= 1_000_000)) {
    throw new InvalidArgumentError('It must be a number from 0 to 1000000.')
  }
  return price
}

async function list(options: WorkspaceOptions): Promise<void> {
  const client = connect(options)
  const { id: workspaceId } = await findWorkspace(client, options.workspace)
  const prices = await client.listPrices({ params: { workspaceId } })
  if (options.json) return printJson(prices)
  printLine(`Estimates use ${prices.priceTable}.`)
  if (prices.items.length === 0) return
  printLine('Prices of this workspace, in US dollars for a million tokens:')
  printTable(
    [
      { title: 'MODEL' },
      ...['INPUT', 'OUTPUT', 'CACHE READ', 'CACHE WRITE', 'REASONING'].map(right),
      { title: 'AUDIO AND IMAGES', isOptional: true },
      { title: 'SET', as: 'time' },
    ],
    prices.items.map(({ model, input, output, cacheRead, cacheWrite, reasoning, changedAt, damaged, ...more }) => {
      if (damaged) return [model, 'damaged', '', '', '', '', '', changedAt]
      const numbers = [input, output, cacheRead, cacheWrite, reasoning]
      const media = MEDIA.flatMap((name) => (more[name] === undefined ? [] : `${name} ${spokenNumber(more[name])}`))
      const texts = numbers.map((price) => (price === undefined ? '-' : spokenNumber(price)))
      return [model, ...texts, media.join(', '), changedAt]
    }),
  )
}

async function set(model: string, options: SetOptions): Promise<void> {
  const client = connect(options)
  const { id: workspaceId } = await findWorkspace(client, options.workspace)
  const { input, output } = options
  const optional = OPTIONAL.map((name) => [name, options[name]] as const).filter(([, price]) => price !== undefined)
  const body: NewPrice = { model, input, output, ...Object.fromEntries(optional) }
  const price = await client.setPrice({ params: { workspaceId }, body })
  if (options.json) return printJson(price)
  printLine(`A million tokens of ${printable(model)} cost $${input} as input and $${output} as output.`)
}

async function remove(model: string, options: WorkspaceOptions): Promise<void> {
  const client = connect(options)
  const { id: workspaceId } = await findWorkspace(client, options.workspace)
  const price = await client.removePrice({ params: { workspaceId }, body: { model } })
  if (options.json) return printJson(price)
  printLine(`The price of ${printable(model)} was removed.`)
}

async function unknown(options: UnknownOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { from, to } = wholePeriodOf(options)
  const models = await client.listUnpricedModels({ params: { environmentId }, query: { from, to } })
  if (options.json) return printJson(models)
  const period = periodText({ from, to }, options)
  if (models.items.length === 0) return printLine(`${period}: every call has a cost or a price.`)
  printLine(`${period}: calls without a cost and a price. --from 30d shows more.`)
  printTable(
    [{ title: 'MODEL' }, right('CALLS'), right('TOKENS')],
    models.items.map(({ model, calls, tokens }) => [
      model === '' ? '(none)' : model,
      spokenNumber(calls),
      spokenNumber(tokens),
    ]),
  )
  if (models.others > 0) printLine(`${spokenNumber(models.others)} calls of further models.`)
}
