import { allItems } from '@tacho/client/items.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { OperatorToken } from '@tacho/contract/people/token.ts'
import type { Command } from 'commander'
import { connect, withYes, ALLOW_FROM, allowedFrom, networksFrom } from '../engine/options.ts'
import { assertConfirmed, type ConfirmOptions } from '../engine/ask.ts'
import { printable, printJson, printLine, printTable, spokenTime } from '../engine/output.ts'
import { findScope, inScope, parseRole, spokenScope, type ScopeOptions } from '../engine/scope.ts'
import { moment } from '../engine/time-text.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'

interface CreateOptions extends ScopeOptions {
  name: string
  role: Role
  expires?: string
  allowFrom?: string[]
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

  withYes(
    inScope(
      tokens.command('revoke <tokenId>').description('revoke an operator token; it stops working within 5 seconds'),
    ),
  )
    .addHelpText(
      'after',
      '\nThe id is the middle part of a token, and the first column of `tacho tokens list`.\n\nExample:\n  tacho tokens revoke 0123456789abcdef --workspace acme --yes',
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

function stateOf({ revokedAt, expiresAt, damaged }: OperatorToken, now: number): string {
  if (revokedAt !== null) return 'revoked'
  if (damaged) return 'damaged'
  if (expiresAt === null) return 'valid'
  return Date.parse(expiresAt) <= now ? 'expired' : `valid until ${spokenTime(expiresAt)}`
}

async function create(options: CreateOptions): Promise<void> {
  const { name, role, expires, allowFrom } = options
  const expiresAt = expires === undefined ? null : moment('--expires', expires, 1, Date.now())
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

async function revoke(tokenId: string, options: ScopeOptions & ConfirmOptions): Promise<void> {
  await assertConfirmed(`Revoke the operator token ${tokenId}?`, options)
  const client = connect(options)
  const scope = await findScope(client, options)
  const token =
    scope === null
      ? await client.revokeInstallationToken({ params: { tokenId } })
      : await client.revokeToken({ params: { workspaceId: scope.id, tokenId } })
  if (options.json) printJson(token)
  else
    printLine(
      `Operator token ${printable(token.name)} (${token.id}) was revoked at ${token.revokedAt ?? 'this moment'}.`,
    )
}
