/** Entries of the audit log in words. */
import type { AuditEntry } from '@tacho/contract/people/audit.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { allWorkspaces, environmentsOf } from '../tenants/tenants.ts'

/** Names of the environments of the entries, by id. A deleted or unreadable one has none. */
export async function environmentNames(
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
  const { from, to, before, after, ...rest } = value as Record<string, unknown>
  const [old, now] = [from ?? before, to ?? after]
  const isChange = Object.keys(rest).length === 0 && (old !== undefined || now !== undefined)
  return isChange
    ? `${valueText(old ?? null)} → ${valueText(now ?? null)}`
    : `(${changeText(value as Record<string, unknown>)})`
}

/** `resultVersion` as `result version`. */
function spaced(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
