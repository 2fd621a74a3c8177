import { allItems } from '@tacho/client/items.ts'
import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SCOPES, type Scope } from '@tacho/contract/web/route.ts'
import { InvalidArgumentError, type Command } from 'commander'
import {
  connect,
  inEnvironment,
  wholeNumber,
  withYes,
  type EnvironmentOptions,
  ALLOW_FROM,
  ANYWHERE,
  allowedFrom,
  networksFrom,
  networksOrAny,
} from '../engine/options.ts'
import { assertConfirmed, type ConfirmOptions } from '../engine/ask.ts'
import { printable, printJson, printLine, printTable, spokenTime } from '../engine/output.ts'
import { connected } from '../engine/connected.ts'
import { wrongUsage } from '../engine/stop.ts'
import { zoneOption, type ZoneOptions } from '../engine/period.ts'
import { moment } from '../engine/time-text.ts'

interface CreateOptions extends EnvironmentOptions, ZoneOptions {
  name: string
  scopes: Scope[]
  expires?: string
  rate?: number
  allowFrom?: string[]
}

const DEFAULT_RATE = 'default'

interface ChangeOptions extends EnvironmentOptions, ZoneOptions {
  name?: string
  scopes?: Scope[]
  expires?: string
  rate?: number | typeof DEFAULT_RATE
  allowFrom?: string[] | typeof ANYWHERE
}

interface RotateOptions extends EnvironmentOptions, ZoneOptions {
  keep: string
  expires?: string
}

export function addKeys(keys: Command): void {
  inEnvironment(keys.command('list').description('list the API keys of an environment'))
    .addHelpText('after', '\nExample:\n  tacho keys list --environment acme/production')
    .action(list)

  inEnvironment(keys.command('create').description('create an API key and print it once'))
    .requiredOption('--name <text>', 'what the key is for')
    .requiredOption('--scopes <scopes>', `${SCOPES.join(', ')}, separated by commas; or all`, parseScopes)
    .option('--expires <when>', 'a duration such as 90d, or a time such as 2027-01-31T00:00:00Z; default: never')
    .addOption(zoneOption())
    .option(
      '--rate <number>',
      "requests per second; default: the server's default",
      wholeNumber(LIMITS.requestsPerSecondMax),
    )
    .option('--allow-from <networks>', ALLOW_FROM, networksFrom)
    .addHelpText(
      'after',
      `
Only the key is written to stdout, for use in scripts. --json prints the key with its details.

Examples:
  tacho keys create --environment acme/production --name recorder --scopes events:write --allow-from 192.0.2.0/24
  KEY=$(tacho keys create --environment acme/production --name ci --scopes all --expires 90d)`,
    )
    .action(create)

  inEnvironment(keys.command('change <keyId>').description('change an API key without a new secret'))
    .option('--name <text>', 'what the key is for')
    .option('--scopes <scopes>', 'the scopes to keep, separated by commas; the others are removed', parseScopes)
    .option('--expires <when>', 'a duration such as 90d, a time, or never')
    .addOption(zoneOption())
    .option('--rate <number>', 'requests per second, or default', parseRate)
    .option('--allow-from <networks>', 'addresses and networks from which the key is valid, or anywhere', networksOrAny)
    .addHelpText(
      'after',
      '\nSettings that you leave out stay as they are. Scopes can only be removed.\n\nExample:\n  tacho keys change 0123456789abcdef --scopes events:write --rate 50 -e acme/production',
    )
    .action(change)

  inEnvironment(keys.command('rotate <keyId>').description('print a new key that replaces an API key, once'))
    .requiredOption('--keep <duration>', 'how long the old key stays valid, such as 7d')
    .option('--expires <when>', 'when the new key expires: a duration, a time, or never; default: like the old key')
    .addOption(zoneOption())
    .addHelpText(
      'after',
      `
Only the key is written to stdout. Both keys work until the old one ends.

Example:
  tacho keys rotate 0123456789abcdef --keep 7d --environment acme/production > recorder.key`,
    )
    .action(rotate)

  withYes(
    inEnvironment(keys.command('revoke <keyId>').description('revoke an API key; it stops working within 5 seconds')),
  )
    .addHelpText(
      'after',
      '\nThe id is the middle part of a key, and the first column of `tacho keys list`.\n\nExample:\n  tacho keys revoke 0123456789abcdef --environment acme/production --yes',
    )
    .action(revoke)
}

function parseScopes(text: string): Scope[] {
  const given = text.split(',').map((scope) => scope.trim())
  if (given.length === 1 && given[0] === 'all') return [...SCOPES]
  const unknown = given.filter((scope) => !(SCOPES as readonly string[]).includes(scope))
  if (unknown.length === 0) return SCOPES.filter((scope) => given.includes(scope))
  throw new InvalidArgumentError(`Unknown scope ${JSON.stringify(unknown[0])}. Use ${SCOPES.join(', ')}, or all.`)
}

async function list(options: EnvironmentOptions): Promise<void> {
  const client = connect(options)
  const { findEnvironment } = await import('./tenants.ts')
  const environment = await findEnvironment(client, options.environment)
  const items = await allItems(client.listApiKeys, { params: { environmentId: environment.id } })
  if (options.json) return printJson({ items, hasMore: false })
  const now = Date.now()
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'NAME' },
      { title: 'STATE', as: 'word' },
      { title: 'SCOPES', as: 'text' },
      { title: 'RATE', isOptional: true },
      { title: 'ALLOWED FROM', isOptional: true },
      { title: 'LOST', isOptional: true },
      { title: 'LAST USED', as: 'time' },
      { title: 'CREATED', as: 'time' },
    ],
    items.map((key) => [
      key.id,
      key.name,
      stateOf(key, now),
      key.scopes.length === SCOPES.length ? 'all' : key.scopes.join(','),
      key.requestsPerSecond === null ? 'default' : `${key.requestsPerSecond}/s`,
      allowedFrom(key),
      key.lostRequests === 0 ? '' : String(key.lostRequests),
      key.lastUsedAt ?? 'never',
      key.createdAt,
    ]),
    'No API keys. `tacho keys create --name <name> --scopes <scopes>` makes one.',
  )
}

function stateOf({ revokedAt, expiresAt, damaged }: ApiKey, now: number): string {
  if (revokedAt !== null) return 'revoked'
  if (damaged) return 'damaged'
  if (expiresAt === null) return 'valid'
  return Date.parse(expiresAt) <= now ? 'expired' : `valid until ${spokenTime(expiresAt)}`
}

async function create(options: CreateOptions): Promise<void> {
  const { name, scopes, expires, rate, allowFrom } = options
  const expiresAt = expires === undefined ? null : moment('--expires', expires, 1, Date.now(), options.zone)
  const client = connect(options)
  const { findEnvironment } = await import('./tenants.ts')
  const environment = await findEnvironment(client, options.environment)
  const key = await client.createApiKey({
    params: { environmentId: environment.id },
    body: { name, scopes, expiresAt, requestsPerSecond: rate ?? null, allowedAddresses: allowFrom ?? null },
  })
  if (options.json) return printJson(key)
  const until = key.expiresAt === null ? '' : `, until ${key.expiresAt}`
  process.stderr.write(
    `API key ${printable(key.name)} (${key.id}) for ${printable(environment.name)} with ${key.scopes.join(', ')}${until}. ` +
      'It is shown only once:\n',
  )
  printLine(key.key)
}

async function change(keyId: string, options: ChangeOptions): Promise<void> {
  const { name, scopes, expires, rate, allowFrom } = options
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(expires === undefined ? {} : { expiresAt: expiry(expires, options.zone) }),
    ...(rate === undefined ? {} : { requestsPerSecond: rate === DEFAULT_RATE ? null : rate }),
    ...(allowFrom === undefined ? {} : { allowedAddresses: allowFrom === ANYWHERE ? null : allowFrom }),
  }
  if (Object.keys(body).length === 0)
    throw wrongUsage('Give at least one of --name, --scopes, --expires, --rate and --allow-from.')
  const { client, environmentId } = await connected(options)
  const key = await client.changeApiKey({ params: { environmentId, keyId }, body })
  if (options.json) printJson(key)
  else
    printLine(
      `API key ${printable(key.name)} (${key.id}) was changed: ${key.scopes.join(', ')}, ${stateOf(key, Date.now())}.`,
    )
}

async function rotate(keyId: string, options: RotateOptions): Promise<void> {
  const { keep, expires } = options
  const oldValidUntil = moment('--keep', keep, 1, Date.now(), options.zone)
  const { client, environmentId } = await connected(options)
  const key = await client.rotateApiKey({
    params: { environmentId, keyId },
    body: { oldValidUntil, ...(expires === undefined ? {} : { expiresAt: expiry(expires, options.zone) }) },
  })
  if (options.json) return printJson(key)
  process.stderr.write(
    `API key ${printable(key.name)} (${key.id}) replaces ${keyId}, which stays valid until ${oldValidUntil}. It is shown only once:\n`,
  )
  printLine(key.key)
}

/** The expiry time; null: never. */
function expiry(given: string, zone: string | undefined): string | null {
  return given === 'never' ? null : moment('--expires', given, 1, Date.now(), zone)
}

function parseRate(given: string): number | typeof DEFAULT_RATE {
  return given === DEFAULT_RATE ? DEFAULT_RATE : wholeNumber(LIMITS.requestsPerSecondMax)(given)
}

async function revoke(keyId: string, options: EnvironmentOptions & ConfirmOptions): Promise<void> {
  await assertConfirmed(`Revoke the API key ${keyId}?`, options)
  const client = connect(options)
  const { findEnvironment } = await import('./tenants.ts')
  const { id: environmentId } = await findEnvironment(client, options.environment)
  const key = await client.revokeApiKey({ params: { environmentId, keyId } })
  if (options.json) printJson(key)
  else printLine(`API key ${printable(key.name)} (${key.id}) was revoked at ${key.revokedAt ?? 'this moment'}.`)
}
