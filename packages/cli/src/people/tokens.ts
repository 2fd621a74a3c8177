import { allItems } from '@tacho/client/items.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { OperatorToken, RevokedOperatorToken } from '@tacho/contract/people/token.ts'
import type { Command } from 'commander'
import { connect, withYes, ALLOW_FROM, allowedFrom, networksFrom } from '../engine/options.ts'
import { assertConfirmed, type ConfirmOptions } from '../engine/ask.ts'
import { printable, printJson, printLine, printTable, spokenTime } from '../engine/output.ts'
import { findScope, inScope, parseRole, spokenScope, type ScopeOptions } from '../engine/scope.ts'
import { zoneOption, type ZoneOptions } from '../engine/period.ts'
import { moment } from '../engine/time-text.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'

interface CreateOptions extends ScopeOptions, ZoneOptions {
  name: string
  role: Role
  expires?: string
  allowFrom?: string[]
}

interface RotateOptions extends ScopeOptions {
  keep: string
  expires?: string
}

export function addTokens(tokens: Command): void {
  inScope(tokens.command('list').description('list operator tokens'))
    .addHelpText(
      'after',
      '\nExamples:\n  tacho tokens list --workspace acme\n  tacho tokens list --installation --json',
    )
    .action(list)

  inScope(tokens.command('create').description('create an operator token and print it once'))
    .requiredOption('--name <text>', 'what the token is for')
    .requiredOption('--role <role>', `${ROLES.join(', ')}; each includes those before it`, parseRole)
    .option('--expires <when>', 'a duration such as 90d, or a time such as 2027-01-31T00:00:00Z; default: never')
    .addOption(zoneOption())
    .option('--allow-from <networks>', ALLOW_FROM, networksFrom)
    .addHelpText(
      'after',
      `
Only the token is written to stdout, for use in scripts. --json prints the token with its details.

Examples:
  tacho tokens create --workspace acme --name ci --role admin --expires 90d > ci.token
  tacho tokens create --installation --name backup --role owner`,
    )
    .action(create)

  inScope(tokens.command('rotate <tokenId>').description('print a new token that replaces an operator token, once'))
    .requiredOption('--keep <duration>', 'how long the old token stays valid, such as 7d')
    .option('--expires <when>', 'when the new token expires: a duration, a time, or never; default: like the old token')
    .addHelpText(
      'after',
      `
Only the token is written to stdout. It has the name, role and addresses of the old one. Both work until the old one ends.

Example:
  tacho tokens rotate 0123456789abcdef --keep 1d --expires 90d --workspace acme > ci.token`,
    )
    .action(rotate)

  withYes(
    inScope(
      tokens.command('revoke <tokenId>').description('revoke an operator token; it stops working within 5 seconds'),
    ),
  )
    .option('--also-made', 'also revoke the valid tokens that it made, and those that these made')
    .addHelpText(
      'after',
      `
The id is the middle part of a token, and the first column of \`tacho tokens list\`. Tokens that it made stay valid, and are
listed; if it leaked, use --also-made.

Examples:
  tacho tokens revoke 0123456789abcdef --workspace acme --yes
  tacho tokens revoke 0123456789abcdef --installation --also-made`,
    )
    .action(revoke)
}

async function list(options: ScopeOptions): Promise<void> {
  const client = connect(options)
  const scope = await findScope(client, options)
  const items =
    scope === null
      ? await allItems(client.listInstallationTokens, {})
      : await allItems(client.listTokens, { params: { workspaceId: scope.id } })
  if (options.json) return printJson({ items, hasMore: false })
  const now = Date.now()
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'NAME' },
      { title: 'ROLE' },
      { title: 'STATE', as: 'word' },
      { title: 'ALLOWED FROM', isOptional: true },
      { title: 'MADE BY', isOptional: true },
      { title: 'LAST USED', as: 'time' },
      { title: 'CREATED', as: 'time' },
    ],
    items.map((token) => [
      token.id,
      token.name,
      token.role,
      stateOf(token, now),
      allowedFrom(token),
      token.createdBy?.name ?? 'unknown',
      token.lastUsedAt ?? 'never',
      token.createdAt,
    ]),
    'No operator tokens. `tacho tokens create` makes one.',
  )
}

function stateOf({ revokedAt, expiresAt, replacedBy, damaged }: OperatorToken, now: number): string {
  if (revokedAt !== null) return 'revoked'
  if (damaged) return 'damaged'
  if (expiresAt === null) return 'valid'
  return Date.parse(expiresAt) <= now
    ? 'expired'
    : `${replacedBy === null ? '' : 'replaced, '}valid until ${spokenTime(expiresAt)}`
}

async function create(options: CreateOptions): Promise<void> {
  const { name, role, expires, allowFrom } = options
  const expiresAt = expires === undefined ? null : moment('--expires', expires, 1, Date.now(), options.zone)
  const client = connect(options)
  const scope = await findScope(client, options)
  const body = { name, role, expiresAt, allowedAddresses: allowFrom ?? null }
  const token =
    scope === null
      ? await client.createInstallationToken({ body })
      : await client.createToken({ params: { workspaceId: scope.id }, body })
  if (options.json) return printJson(token)
  const until = token.expiresAt === null ? '' : `, until ${token.expiresAt}`
  process.stderr.write(
    `Operator token ${printable(token.name)} (${token.id}), ${token.role} of ${spokenScope(scope)}${until}. ` +
      'It is shown only once:\n',
  )
  printLine(token.token)
}

async function rotate(tokenId: string, options: RotateOptions): Promise<void> {
  const { keep, expires } = options
  const now = Date.now()
  const oldValidUntil = moment('--keep', keep, 1, now)
  const expiresAt = expires === undefined || expires === 'never' ? null : moment('--expires', expires, 1, now)
  const body = { oldValidUntil, ...(expires === undefined ? {} : { expiresAt }) }
  const client = connect(options)
  const scope = await findScope(client, options)
  const token =
    scope === null
      ? await client.rotateInstallationToken({ params: { tokenId }, body })
      : await client.rotateToken({ params: { workspaceId: scope.id, tokenId }, body })
  if (options.json) return printJson(token)
  process.stderr.write(
    `Operator token ${printable(token.name)} (${token.id}) replaces ${tokenId}, which stays valid until ${oldValidUntil} at the latest. ` +
      'It is shown only once:\n',
  )
  printLine(token.token)
}

async function revoke(tokenId: string, options: ScopeOptions & ConfirmOptions & { alsoMade?: boolean }): Promise<void> {
  const what = options.alsoMade
    ? `the operator token ${tokenId} and the tokens that it made`
    : `the operator token ${tokenId}`
  await assertConfirmed(`Revoke ${what}?`, options)
  const client = connect(options)
  const scope = await findScope(client, options)
  const query = options.alsoMade ? ({ alsoMade: 'true' } as const) : {}
  const token =
    scope === null
      ? await client.revokeInstallationToken({ params: { tokenId }, query })
      : await client.revokeToken({ params: { workspaceId: scope.id, tokenId }, query })
  if (options.json) return printJson(token)
  printLine(`Operator token ${printable(token.name)} (${token.id}) was revoked at ${token.revokedAt ?? 'this moment'}.`)
  printMade(token.madeTokens)
}

function printMade(tokens: RevokedOperatorToken['madeTokens']): void {
  if (tokens.length === 0) return
  const areRevoked = tokens[0]?.revokedAt !== null
  printLine(
    areRevoked ? 'Also revoked, because it made them:' : 'Still valid, and made by it (--also-made revokes them):',
  )
  for (const { id, name, role, workspaceId } of tokens) {
    printLine(
      `  ${id}  ${printable(name)}  ${role} ${workspaceId === null ? 'everywhere' : `of workspace ${workspaceId}`}`,
    )
  }
}
