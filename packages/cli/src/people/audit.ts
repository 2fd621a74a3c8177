import type { Command } from 'commander'
import { eachItem, taken } from '@tacho/client/items.ts'
import type { AuditQuery, AuditEntry } from '@tacho/contract/people/audit.ts'
import { AUDIT_FILTERS } from '@tacho/contract/people/audit-filters.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import { connect, mostOf, pageSize, withPages, type PageOptions } from '../engine/options.ts'
import { printJson, printMore, printTable } from '../engine/output.ts'
import { findScope, inScope, type ScopeOptions } from '../engine/scope.ts'
import { filterQuery, withFilters } from '../engine/filter-flags.ts'
import { printPeriod, type ZoneOptions } from '../engine/period.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { allWorkspaces, environmentsOf } from '../tenants/tenants.ts'

interface Options extends ScopeOptions, PageOptions, ZoneOptions {
  target?: string
}

const LIMIT = 50

export function addAudit(audit: Command): void {
  withFilters(
    withPages(inScope(audit.command('list').description('list the audit log, newest first')), LIMIT),
    AUDIT_FILTERS,
  )
    .option('--target <kind[/id]>', 'only actions on this target, such as policy or policy/refunds')
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
  printPeriod(query, options)
  const names = await environmentNames(client, scope, items)
  printTable(
    [
      { title: 'AT', as: 'time' },
      { title: 'WHO' },
      { title: 'FROM', isOptional: true },
      { title: 'ENVIRONMENT', isOptional: true },
      { title: 'ACTION', as: 'whole' },
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

function queryOf(options: Options): AuditQuery {
  const { target } = options
  const slash = target?.indexOf('/') ?? -1
  return {
    limit: pageSize(mostOf(options)),
    ...filterQuery(AUDIT_FILTERS, options, Date.now()),
    ...(target === undefined ? {} : { targetKind: slash === -1 ? target : target.slice(0, slash) }),
    ...(target === undefined || slash === -1 ? {} : { targetId: target.slice(slash + 1) }),
  }
}

/** Entries of the audit log in words. */

/** Names of the entries' environments, by id. A deleted or unreadable environment has no name. */
async function environmentNames(
  client: OperatorClient,
  scope: Workspace | null,
  entries: readonly AuditEntry[],
): Promise<Map<string, string>> {
  const wanted = new Set(entries.map(({ workspaceId, environmentId }) => environmentId && workspaceId))
  const names = new Map<string, string>()
  const workspaces = scope === null ? await allWorkspaces(client, true) : [scope]
  for (const workspace of workspaces.filter(({ id }) => wanted.has(id))) {
    for (const { id, name } of await environmentsOf(client, workspace, true)) {
      names.set(id, scope === null ? `${workspace.name}/${name}` : name)
    }
  }
  return names
}

/** `name: old → new, scopes: events:write`. */
export function changeText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .map(([name, value]) => `${spaced(name)}: ${valueText(value)}`)
    .join(', ')
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(valueText).join(' ')
  if (value === null) return 'none'
  if (typeof value !== 'object') return typeof value === 'string' ? value : JSON.stringify(value)
  const { from, to, before, after, ...otherFields } = value as Record<string, unknown>
  const [old, now] = [from ?? before, to ?? after]
  const isChange = Object.keys(otherFields).length === 0 && (old !== undefined || now !== undefined)
  return isChange
    ? `${valueText(old ?? null)} → ${valueText(now ?? null)}`
    : `(${changeText(value as Record<string, unknown>)})`
}

/** `resultVersion` as `result version`. */
function spaced(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
