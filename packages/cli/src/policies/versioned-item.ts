/**
 * Prompts and policies in commands: finds an item, shows where its versions are deployed, and compares two versions.
 */
import { styleText } from 'node:util'
import type { DeployableKind, Deployment } from '@tacho/contract/policies/deployment.ts'
import { eachItem } from '@tacho/client/items.ts'
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { orNull, unknown } from '../engine/find-by-id.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { environmentsOf } from '../tenants/tenants.ts'
import { printable } from '../engine/output.ts'

/** Looks up prompts and policies for commands. */

/** A prompt or policy of a workspace. */
interface Found {
  kind: DeployableKind
  /** Prompt id or policy id. */
  id: string
  /** Name of the prompt; id of the policy. */
  name: string
  /** The newest version. */
  newest: string
}

/** A prompt by its name or id; a policy by its id. */
export async function findItem(
  client: OperatorClient,
  workspaceId: string,
  kind: DeployableKind,
  itemName: string,
): Promise<Found> {
  const item = await lookUp(client, workspaceId, kind, itemName)
  if (item === null) throw unknown(kind, itemName, kind === 'prompt' ? 'prompts list' : 'policies list')
  return item
}

/** Finds the item, and the version in `greeting@5`. A text that is a whole name has no version. */
export async function findVersioned(client: OperatorClient, workspaceId: string, kind: DeployableKind, named: string) {
  const [, itemName, number] = /^(.+)@([1-9][0-9]{0,8})$/.exec(named) ?? []
  const whole = itemName === undefined ? null : await lookUp(client, workspaceId, kind, named)
  if (whole !== null || itemName === undefined)
    return { item: whole ?? (await findItem(client, workspaceId, kind, named)) }
  return { item: await findItem(client, workspaceId, kind, itemName), number }
}

const lookUp = (client: OperatorClient, workspaceId: string, kind: DeployableKind, itemName: string) =>
  kind === 'prompt' ? findPrompt(client, workspaceId, itemName) : findPolicy(client, workspaceId, itemName)

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

async function findPrompt(client: OperatorClient, workspaceId: string, itemName: string): Promise<Found | null> {
  const [named] = (await client.listPrompts({ params: { workspaceId }, query: { name: itemName, archived: 'true' } }))
    .items
  const byId = () => orNull(client.readPrompt({ params: { workspaceId, promptId: itemName } }))
  const prompt = named ?? (UUID.test(itemName) ? await byId() : null)
  return prompt && { kind: 'prompt', id: prompt.promptId, name: prompt.name, newest: prompt.newest.version }
}

async function findPolicy(client: OperatorClient, workspaceId: string, itemName: string): Promise<Found | null> {
  const policy = await orNull(client.readPolicy({ params: { workspaceId, policyId: itemName } }))
  return policy && { kind: 'policy', id: policy.policyId, name: policy.policyId, newest: policy.newest.version }
}

/** The deployed versions in each environment of a workspace. */

interface DeployedPlace extends Pick<Deployment, 'version' | 'share'> {
  environment: string
}

/** By prompt or policy id: `production 3 (10 %: 4), staging 4`. */
export async function inForce(
  client: OperatorClient,
  workspace: Workspace,
  kind: DeployableKind,
): Promise<Map<string, DeployedPlace[]>> {
  const places = new Map<string, DeployedPlace[]>()
  for (const { id: environmentId, name } of await environmentsOf(client, workspace)) {
    for await (const row of eachItem(client.listDeployments, { params: { environmentId } })) {
      if (row.kind !== kind) continue
      const known = places.get(row.id) ?? []
      known.push({ environment: name, version: row.version, share: row.share })
      places.set(row.id, known)
    }
  }
  return places
}

export function spokenPlaces(places: DeployedPlace[] | undefined): string {
  const spokenShare = (share: DeployedPlace['share']) => (share ? ` (${share.percent} %: ${share.version})` : '')
  return (places ?? [])
    .map(({ environment, version, share }) => `${environment} ${version}${spokenShare(share)}`)
    .join(', ')
}

/** Formats the differences of two versions. Pure, except for colours. */

type Line = VersionDiff['fields'][number]['lines'][number]

/** Number of unchanged lines around a change. */
const CONTEXT = 3
const MARKS = { same: ' ', removed: '-', added: '+' } as const
const COLOURS = { removed: 'red', added: 'green' } as const

/** The default is the newest version and the one before it. */
export function diffQuery(newest: string, from: string | undefined, to: string | undefined) {
  const second = to ?? newest
  return { from: from ?? String(Math.max(1, Number(second) - 1)), to: second }
}

export function diffLines({ fields }: Pick<VersionDiff, 'fields'>): string[] {
  return fields.flatMap(({ field, lines, exact }) => [
    exact ? `${field}:` : `${field} (almost every line differs):`,
    ...near(lines).map((line) => (line === null ? '  …' : lineText(line))),
  ])
}

/** Replaces unchanged lines far from any change with null. */
function near(lines: Line[]): (Line | null)[] {
  const shown = lines.map((_, place) =>
    lines.slice(Math.max(0, place - CONTEXT), place + CONTEXT + 1).some(({ change }) => change !== 'same'),
  )
  return lines.flatMap((line, place) => {
    if (shown[place]) return [line]
    return place === 0 || shown[place - 1] ? [null] : []
  })
}

function lineText({ change, text }: Line): string {
  const line = `${MARKS[change]} ${printable(text)}`
  return change === 'same' ? line : styleText(COLOURS[change], line, { stream: process.stdout })
}
