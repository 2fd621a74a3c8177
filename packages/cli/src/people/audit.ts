import { eachItem, taken } from '@tacho/client/items.ts'
import type { AuditQuery } from '@tacho/contract/people/audit.ts'
import type { Command } from 'commander'
import { changeText, environmentNames } from './entry-text.ts'
import { connect, mostOf, pageSize, withPages, type PageOptions } from '../engine/options.ts'
import { printJson, printMore, printTable } from '../engine/output.ts'
import { findScope, inScope, type ScopeOptions } from '../engine/scope.ts'
import { moment } from '../engine/time-text.ts'

interface Options extends ScopeOptions, PageOptions {
  action?: string
  actor?: string
  target?: string
  from?: string
  to?: string
}

const LIMIT = 50

export function addAudit(audit: Command): void {
  withPages(inScope(audit.command('list').description('list the audit log, newest first')), LIMIT)
    .option('--action <action>', 'only this action, such as api_key.create')
    .option('--actor <id>', 'only actions of this operator or token')
    .option('--target <kind[/id]>', 'only actions on this target, such as policy or policy/refunds')
    .option('--from <when>', 'at or after: a time, or a duration before now such as 7d')
    .option('--to <when>', 'before')
    .addHelpText(
      'after',
      '\nExamples:\n  tacho audit list --workspace acme --from 7d\n  tacho audit list --installation --action operator.sign_in --all --json',
    )
    .action(list)
}

async function list(options: Options): Promise<void> {
  const client = connect(options)
  const scope = await findScope(client, options)
  const query = queryOf(options)
  const entries =
    scope === null
      ? eachItem(client.listInstallationAudit, { query })
      : eachItem(client.listAudit, { params: { workspaceId: scope.id }, query })
  const { items, hasMore } = await taken(entries, mostOf(options))
  if (options.json) return printJson({ items, hasMore })
  const names = await environmentNames(client, scope, items)
  printTable(
    [
      { title: 'AT', as: 'time' },
      { title: 'WHO' },
      { title: 'FROM', isOptional: true },
      { title: 'ENVIRONMENT', isOptional: true },
      { title: 'ACTION' },
      { title: 'TARGET' },
      { title: 'CHANGE', as: 'text' },
    ],
    items.map((entry) => [
      entry.at,
      entry.actor.name,
      entry.address ?? '',
      entry.environmentId === null ? '' : (names.get(entry.environmentId) ?? entry.environmentId),
      entry.action,
      [entry.target.kind, entry.target.id].filter((word) => word !== '').join('/'),
      changeText(entry.detail),
    ]),
    'No matching entries. `tacho audit list` shows all changes and sign-ins.',
  )
  printMore(hasMore)
}

function queryOf({ action, actor, target, from, to, ...paging }: Options): AuditQuery {
  const now = Date.now()
  const slash = target?.indexOf('/') ?? -1
  return {
    limit: pageSize(mostOf(paging)),
    ...(action === undefined ? {} : { action }),
    ...(actor === undefined ? {} : { actorId: actor }),
    ...(target === undefined ? {} : { targetKind: slash === -1 ? target : target.slice(0, slash) }),
    ...(target === undefined || slash === -1 ? {} : { targetId: target.slice(slash + 1) }),
    ...(from === undefined ? {} : { from: moment('--from', from, -1, now) }),
    ...(to === undefined ? {} : { to: moment('--to', to, -1, now) }),
  }
}
