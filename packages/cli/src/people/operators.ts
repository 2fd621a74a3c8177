import { allItems } from '@tacho/client/items.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { localLinkWarning } from '@tacho/contract/people/local-link.ts'
import type { Operator } from '@tacho/contract/people/operator.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import { InvalidArgumentError, type Command } from 'commander'
import type { OperatorClient } from '../engine/operator-client.ts'
import { connect, withYes } from '../engine/options.ts'
import { assertConfirmed, type ConfirmOptions } from '../engine/ask.ts'
import { printable, printJson, printLine, printTable, spokenTime } from '../engine/output.ts'
import { findScope, inScope, parseRole, spokenScope, type ScopeOptions } from '../engine/scope.ts'
import { wrongUsage } from '../engine/stop.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'

interface InviteOptions extends ScopeOptions {
  role: Role
}

type Scope = Workspace | null

export function addOperators(operators: Command): void {
  inScope(operators.command('list').description('list people and pending invitations'))
    .addHelpText(
      'after',
      '\nExamples:\n  tacho operators list --workspace acme\n  tacho operators list --installation --json',
    )
    .action(list)

  inScope(operators.command('invite <email>').description('invite a person and print a one-time link'))
    .requiredOption('--role <role>', `${ROLES.join(', ')}; each includes those before it`, parseRole)
    .addHelpText(
      'after',
      `
Only the link is written to stdout. Give it to that person only: the first to open it chooses the password. With
--installation the role applies to every workspace. An owner of the installation can also create workspaces and backups.

Examples:
  tacho operators invite ann@example.com --workspace acme --role approver
  tacho operators invite boss@example.com --installation --role owner`,
    )
    .action(invite)

  inScope(operators.command('role <operator> <role>').description('change the role of a person'))
    .addHelpText(
      'after',
      `
<operator> is an e-mail address or an id. With --installation, <role> can be none.

Example:
  tacho operators role ann@example.com admin --workspace acme`,
    )
    .action(changeRole)

  withYes(
    inScope(
      operators.command('remove <operator>').description('remove a person; with --installation, end the account'),
    ),
  )
    .addHelpText('after', '\nExample:\n  tacho operators remove ann@example.com --workspace acme --yes')
    .action(remove)

  inScope(operators.command('uninvite <invitation>').description('revoke an invitation, by its id or address'))
    .addHelpText('after', '\nExample:\n  tacho operators uninvite ann@example.com --workspace acme')
    .action(uninvite)
}

async function list(options: ScopeOptions): Promise<void> {
  const client = connect(options)
  const scope = await findScope(client, options)
  const [items, invitations] = [await people(client, scope), await invited(client, scope, false)]
  if (options.json) return printJson({ items, invitations, hasMore: false })
  printTable(
    [
      { title: 'E-MAIL' },
      { title: 'NAME' },
      { title: 'ROLE' },
      { title: 'SECOND FACTOR', isOptional: true },
      { title: 'LAST SIGN-IN', as: 'time' },
      { title: 'ID', as: 'whole' },
    ],
    [
      ...items.map((one) => [
        one.email,
        one.name,
        one.deactivated
          ? 'deactivated'
          : one.damaged
            ? 'damaged'
            : one.fromGroups
              ? `${one.role} by group`
              : (one.role ?? 'none'),
        one.twoFactor ? 'yes' : 'no',
        one.lastSignInAt ?? 'unknown',
        one.id,
      ]),
      ...invitations.map((one) => [one.email, '', one.role, '', `invited until ${spokenTime(one.expiresAt)}`, one.id]),
    ],
    'No people yet. `tacho operators invite <e-mail> --role <role>` invites one.',
  )
  if (scope !== null)
    process.stderr.write('People with a role in every workspace: tacho operators list --installation\n')
}

async function invite(email: string, options: InviteOptions): Promise<void> {
  const client = connect(options)
  const scope = await findScope(client, options)
  const body = { email, role: options.role }
  const invitation =
    scope === null
      ? await client.inviteEverywhere({ body })
      : await client.invite({ params: { workspaceId: scope.id }, body })
  if (options.json) return printJson(invitation)
  process.stderr.write(
    `${printable(invitation.email)} is invited as ${invitation.role} to ${spokenScope(scope)}, ` +
      `until ${invitation.expiresAt}. The link is shown only once:\n`,
  )
  printLine(invitation.link)
  const warning = localLinkWarning(invitation.link)
  if (warning !== null) process.stderr.write(`Warning: ${warning}\n`)
}

async function changeRole(operatorName: string, roleText: string, options: ScopeOptions): Promise<void> {
  const role = roleText === 'none' && options.installation ? null : roleArgument(roleText)
  const client = connect(options)
  const scope = await findScope(client, options)
  const { id: operatorId } = await findOperator(client, scope, operatorName)
  const changed =
    scope === null || role === null
      ? await client.changeInstallationRole({ params: { operatorId }, body: { role } })
      : await client.changeRole({ params: { workspaceId: scope.id, operatorId }, body: { role } })
  if (options.json) printJson(changed)
  else printLine(`${printable(changed.email)} is ${changed.role ?? 'without a role'} in ${spokenScope(scope)}.`)
}

async function remove(operatorName: string, options: ScopeOptions & ConfirmOptions): Promise<void> {
  const client = connect(options)
  const scope = await findScope(client, options)
  const { id: operatorId, email } = await findOperator(client, scope, operatorName)
  const act = scope === null ? 'End the account of' : `Remove from ${spokenScope(scope)}:`
  await assertConfirmed(`${act} ${printable(email)}?`, options)
  const removed =
    scope === null
      ? await client.deleteOperator({ params: { operatorId } })
      : await client.removeOperator({ params: { workspaceId: scope.id, operatorId } })
  if (options.json) printJson(removed)
  else if (scope === null) printLine(`The account of ${printable(email)} was ended.`)
  else printLine(`${printable(email)} was removed from ${spokenScope(scope)}.`)
}

async function uninvite(operatorName: string, options: ScopeOptions): Promise<void> {
  const client = connect(options)
  const scope = await findScope(client, options)
  const invitedPerson = (await invited(client, scope, true)).find(
    ({ id, email }) => id === operatorName || email === lower(operatorName),
  )
  if (!invitedPerson)
    throw wrongUsage(`No invitation for ${JSON.stringify(operatorName)}: \`tacho operators list\` shows all.`)
  const invitationId = invitedPerson.id
  const revoked =
    scope === null
      ? await client.revokeInstallationInvitation({ params: { invitationId } })
      : await client.revokeInvitation({ params: { workspaceId: scope.id, invitationId } })
  if (options.json) printJson(revoked)
  else printLine(`The invitation of ${printable(revoked.email)} was revoked.`)
}

function people(client: OperatorClient, scope: Scope): Promise<Operator[]> {
  return scope === null
    ? allItems(client.listInstallationOperators, {})
    : allItems(client.listOperators, { params: { workspaceId: scope.id } })
}

/** The invitations. Empty for a caller who may not see them, unless the command needs them. */
async function invited(client: OperatorClient, scope: Scope, isNeeded: boolean) {
  if (scope === null) return allItems(client.listInstallationInvitations, {})
  const me = isNeeded ? null : await client.readMe()
  const isOwner =
    me === null || me.installation || me.workspaces.some(({ id, role }) => id === scope.id && role === 'owner')
  return isOwner ? allItems(client.listInvitations, { params: { workspaceId: scope.id } }) : []
}

async function findOperator(client: OperatorClient, scope: Scope, operatorName: string): Promise<Operator> {
  const namedOperator = (await people(client, scope)).find(
    ({ id, email }) => id === lower(operatorName) || email === lower(operatorName),
  )
  if (namedOperator) return namedOperator
  throw wrongUsage(
    `No person ${JSON.stringify(operatorName)} in ${spokenScope(scope)}: \`tacho operators list\` shows all.`,
  )
}

function roleArgument(text: string): Role {
  try {
    return parseRole(text)
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw wrongUsage(`<role>: ${error.message}`)
    throw error
  }
}

function lower(text: string): string {
  return text.toLowerCase()
}
