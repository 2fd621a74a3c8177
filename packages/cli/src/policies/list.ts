/** `tacho policies list, show, diff`. */
import { allItems } from '@tacho/client/items.ts'
import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { messageOf, purposeOf } from '@tacho/policy/message.ts'
import { connect, type ServerOptions } from '../engine/options.ts'
import {
  authorText,
  printable,
  printEmpty,
  printJson,
  printLine,
  printTable,
  spokenNumber,
  spokenTime,
} from '../engine/output.ts'
import { environmentsOf, findWorkspace } from '../tenants/tenants.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import { diffLines, diffQuery, inForce, spokenPlaces, findItem } from './versioned-item.ts'

export interface WorkspaceOptions extends ServerOptions {
  workspace?: string
}

interface ListOptions extends WorkspaceOptions {
  archived?: true
}

interface ShowOptions extends WorkspaceOptions {
  number?: string
  history?: true
}

export async function listPolicies(options: ListOptions): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const query = options.archived ? { archived: 'true' as const } : {}
  const items = await allItems(client.listPolicies, { params: { workspaceId: workspace.id }, query })
  const places = await inForce(client, workspace, 'policy')
  if (options.json) {
    return printJson({
      items: items.map((policy) => ({ ...policy, inForce: places.get(policy.policyId) ?? [] })),
      hasMore: false,
    })
  }
  if (items.length === 0)
    return printEmpty('No policies. `tacho policies create` creates one, `tacho apply` those of a file.')
  printTable(
    [
      { title: 'POLICY' },
      { title: 'NEWEST' },
      { title: 'DEPLOYED' },
      { title: 'SEVERITY', as: 'word' },
      { title: 'ACTION', as: 'word' },
      { title: 'NAME', isOptional: true },
    ],
    items.map(({ policyId, newest, archivedAt }) => [
      policyId,
      newest.damaged ? `${newest.version}, damaged` : newest.version,
      archivedAt === null ? spokenPlaces(places.get(policyId)) : 'archived',
      newest.severity,
      newest.action,
      newest.name,
    ]),
  )
}

export async function showPolicy(policyId: string, options: ShowOptions): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { newest } = await findItem(client, workspace.id, 'policy', policyId)
  const params = { workspaceId: workspace.id, policyId }
  if (options.history) {
    const items = await allItems(client.listPolicyVersions, { params })
    if (options.json) return printJson({ items, hasMore: false })
    return printTable(
      [
        { title: 'VERSION' },
        { title: 'WRITTEN', as: 'time' },
        { title: 'AUTHOR', isOptional: true },
        { title: 'SEVERITY', as: 'word' },
        { title: 'ACTION', as: 'word' },
        { title: 'NOTE', as: 'text' },
      ],
      items.map((row) => [
        row.version,
        row.createdAt,
        authorText(row.author, row.importedAt),
        row.severity,
        row.action,
        row.note ?? '',
      ]),
    )
  }
  const places = (await inForce(client, workspace, 'policy')).get(policyId) ?? []
  const deployed = [...new Set(places.map((place) => place.version))]
  // Show the deployed version, which agents use. The newest version may be a draft.
  const [inUse = newest, another] = deployed
  const version = await readVersion(client, params, options.number ?? (another === undefined ? inUse : newest))
  if (options.json) return printJson(version)
  printLine(`${printable(version.policyId)}  version ${version.version}  ${version.severity}  ${version.action}`)
  printLine(`In force     ${places.length === 0 ? 'nowhere' : printable(spokenPlaces(places))}`)
  if (version.version !== newest) printLine(`Newest       version ${newest}; --number ${newest} shows it`)
  printLine(`On error     ${onErrorText(version)}`)
  if (version.approvers === 2) printLine('Approvers    2 different people, and never the one who runs the agent')
  if (version.action === 'REQUIRE_APPROVAL' && version.grants === 'never')
    printLine('Grants       never: each call needs a decision of its own')
  if (version.template) printLine(`Template     ${printable(version.template)}`)
  if (version.name !== policyId) printLine(`Name         ${printable(version.name)}`)
  const [purpose, message] = [purposeOf(version.description), messageOf(version.description)]
  if (purpose !== null) printLine(`Description  ${printable(purpose)}`)
  if (message !== null) printLine(`Message      ${printable(message)}`)
  printLine(
    `Written      ${spokenTime(version.createdAt)} by ${printable(authorText(version.author, version.importedAt))}`,
  )
  if (version.note !== null) printLine(`Note         ${printable(version.note)}`)
  for (const line of await unansweredLines(client, workspace, policyId)) printLine(`Unanswered   ${line}`)
  printLine()
  for (const line of version.condition.split(/\r?\n/)) printLine(printable(line))
}

/** Lines about requests of the last week that expired without a decision, by environment. */
async function unansweredLines(client: OperatorClient, workspace: Workspace, policyId: string): Promise<string[]> {
  const lines: string[] = []
  for (const { id: environmentId, name } of await environmentsOf(client, workspace)) {
    const query = { policyId }
    const { items, capped } = await client.countUnansweredRequests({ params: { environmentId }, query })
    const [{ expired, withdrawn } = { expired: 0, withdrawn: 0 }] = items
    if (expired === 0) continue
    const count = `${spokenNumber(expired)}${capped ? ' or more' : ''} ${expired === 1 ? 'request' : 'requests'}`
    const some = withdrawn === 0 ? '' : `, ${spokenNumber(withdrawn)} of them withdrawn before`
    lines.push(`${count} expired undecided in ${printable(name)} within seven days${some}`)
  }
  return lines
}

/** Describes the decision if the condition cannot be evaluated. */
function onErrorText({ onError, severity }: PolicyVersion): string {
  const acts = onError === null ? severity === 'HIGH' || severity === 'CRITICAL' : onError === 'act'
  const does = acts
    ? 'act: a condition that cannot be evaluated counts as a match'
    : 'ignore: a condition that cannot be evaluated matches nothing'
  return onError === null ? `${does} (by severity ${severity}; set it with --on-error)` : does
}

export async function diffPolicy(
  policyId: string,
  from: string | undefined,
  to: string | undefined,
  options: WorkspaceOptions,
): Promise<void> {
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const { newest } = await findItem(client, workspace.id, 'policy', policyId)
  const query = diffQuery(newest, from, to)
  const fieldDiff = await client.diffPolicyVersions({ params: { workspaceId: workspace.id, policyId }, query })
  if (options.json) return printJson(fieldDiff)
  if (fieldDiff.fields.length === 0) printLine(`Versions ${query.from} and ${query.to} are equal.`)
  for (const line of diffLines(fieldDiff)) printLine(line)
}

export function readVersion(
  client: OperatorClient,
  params: { workspaceId: string; policyId: string },
  version: string,
): Promise<PolicyVersion> {
  return client.readPolicyVersion({ params: { ...params, version } })
}
