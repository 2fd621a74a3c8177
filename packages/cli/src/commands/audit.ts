import { eachItem } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { AuditQuery } from '@tacho/contract/operator/audit.ts'
import type { Command } from 'commander'
import { connect, wholeNumber } from '../settings/options.ts'
import { printJson, printTable } from '../terminal/output.ts'
import { findScope, inScope, type ScopeOptions } from '../settings/scope.ts'
import { taken } from '../calls/taken.ts'
import { moment } from '../terminal/time-text.ts'

interface Options extends ScopeOptions {
  action?: string
  actor?: string
  target?: string
  from?: string
  to?: string
  limit: number
  all?: true
}

const LIMIT = 50
const MOST = 1_000_000

export function addAudit(audit: Command): void {
  inScope(audit.command('list').description('list the audit log, newest first'))
    .option('--action <action>', 'only this action, such as api_key.create')
    .option('--actor <id>', 'only actions of this operator or token')
    .option('--target <kind[/id]>', 'only actions on this target, such as policy or policy/refunds')
    .option('--from <when>', 'at or after: a time, or a duration before now such as 7d')
    .option('--to <when>', 'before')
    .option('--limit <number>', `maximum to show (default ${LIMIT})`, wholeNumber(MOST), LIMIT)
    .option('--all', 'show all, ignoring --limit')
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
  const { items, hasMore } = await taken(entries, options.all ? Number.POSITIVE_INFINITY : options.limit)
  if (options.json) return printJson({ items, hasMore })
  printTable(
    ['AT', 'WHO', 'ACTION', 'TARGET', 'DETAIL'].map((title) => ({ title })),
    items.map(({ at, actor, action, target, detail }) => [
      at,
      `${actor.name} (${actor.kind})`,
      action,
      `${target.kind}/${target.id}`,
      Object.keys(detail).length === 0 ? '' : JSON.stringify(detail),
    ]),
  )
  if (hasMore) process.stderr.write(`There are more: raise --limit, or use --all.\n`)
}

function queryOf({ action, actor, target, from, to, limit, all }: Options): AuditQuery {
  const now = Date.now()
  const slash = target?.indexOf('/') ?? -1
  return {
    limit: all ? LIMITS.operatorPageMax : Math.min(limit + 1, LIMITS.operatorPageMax),
    ...(action === undefined ? {} : { action }),
    ...(actor === undefined ? {} : { actorId: actor }),
    ...(target === undefined ? {} : { targetKind: slash === -1 ? target : target.slice(0, slash) }),
    ...(target === undefined || slash === -1 ? {} : { targetId: target.slice(slash + 1) }),
    ...(from === undefined ? {} : { from: moment('--from', from, -1, now) }),
    ...(to === undefined ? {} : { to: moment('--to', to, -1, now) }),
  }
}
