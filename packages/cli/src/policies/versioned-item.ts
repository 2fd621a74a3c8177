/** Prompts and policies in commands: finding one, where its versions are deployed, and how two versions differ. */
import { styleText } from 'node:util'
import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
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
  return kind === 'prompt' ? findPrompt(client, workspaceId, itemName) : findPolicy(client, workspaceId, itemName)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

async function findPrompt(client: OperatorClient, workspaceId: string, itemName: string): Promise<Found> {
  const [named] = (await client.listPrompts({ params: { workspaceId }, query: { name: itemName, archived: 'true' } }))
    .items
  const byId = () => orNull(client.readPrompt({ params: { workspaceId, promptId: itemName } }))
  const prompt = named ?? (UUID.test(itemName) ? await byId() : null)
  if (prompt) return { kind: 'prompt', id: prompt.promptId, name: prompt.name, newest: prompt.newest.version }
  throw unknown('prompt', itemName, 'prompts list')
}

async function findPolicy(client: OperatorClient, workspaceId: string, itemName: string): Promise<Found> {
  const policy = await orNull(client.readPolicy({ params: { workspaceId, policyId: itemName } }))
  if (policy) return { kind: 'policy', id: policy.policyId, name: policy.policyId, newest: policy.newest.version }
  throw unknown('policy', itemName, 'policies list')
}

/** The deployed versions in each environment of a workspace. */

/** Keyed by prompt or policy id: `production 3, staging 4`. */
export async function inForce(
  client: OperatorClient,
  workspace: Workspace,
  kind: DeployableKind,
): Promise<Map<string, { environment: string; version: string }[]>> {
  const places = new Map<string, { environment: string; version: string }[]>()
  for (const { id: environmentId, name } of await environmentsOf(client, workspace)) {
    for await (const row of eachItem(client.listDeployments, { params: { environmentId } })) {
      if (row.kind !== kind) continue
      const known = places.get(row.id) ?? []
      known.push({ environment: name, version: row.version })
      places.set(row.id, known)
    }
  }
  return places
}

export function spokenPlaces(places: { environment: string; version: string }[] | undefined): string {
  return (places ?? []).map(({ environment, version }) => `${environment} ${version}`).join(', ')
}

/** Formats the differences of two versions. Pure, except for colours. */

type Line = VersionDiff['fields'][number]['lines'][number]

/** Unchanged lines to show around a change. */
const CONTEXT = 3
const MARKS = { same: ' ', removed: '-', added: '+' } as const
const COLOURS = { removed: 'red', added: 'green' } as const

/** By default the newest version and the one before it. */
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
