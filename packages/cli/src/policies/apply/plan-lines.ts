/** Formats a plan for people. Pure, except for colours. */
import { styleText } from 'node:util'
import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { diffFields } from '@tacho/server/domain/policies/diff.ts'
import { diffLines } from '../versioned-item.ts'
import { counted, printable, strong } from '../../engine/output.ts'
import { type DeploymentChange, type Kept, type NotRestarted, type Plan, type Write, type Present } from './plan.ts'
import type { OperatorClient } from '../../engine/operator-client.ts'
import { POLICY_FIELDS, type Manifest } from './manifest.ts'

/** @param diffs the changes of each write, by `diffKey`. */
export function planLines(
  workspace: string,
  { restores, writes, deployments, labels }: Changes,
  diffs: ReadonlyMap<string, WriteDiff>,
): string[] {
  const lines: string[] = []
  if (restores.length + writes.length > 0) lines.push(strong(`Workspace ${printable(workspace)}`))
  lines.push(...restores.map(({ kind, name }) => green(`  + ${kind} ${printable(name)}: restore (was archived)`)))
  for (const write of writes) {
    const diff = diffs.get(diffKey(write))
    lines.push(writeLine(write), ...(diff === undefined ? [] : diffLines(diff).map((line) => `      ${line}`)))
  }
  for (const { environment, changes } of deployments) {
    lines.push(strong(`Environment ${printable(environment)}`), ...changes.map(changeLine))
  }
  for (const { environment, added, removed } of labels) {
    lines.push(strong(`Labels of tools in ${printable(environment)}`))
    lines.push(...removed.map((tool) => red(`  - rule of ${printable(tool)}`)))
    lines.push(...added.map((tool) => green(`  + rule of ${printable(tool)}`)))
  }
  return [...lines, '', summary({ restores, writes, deployments, labels })]
}

/** Lines about items that stay deployed although the file does not list them. */
export function keptLines(keptItems: readonly Kept[]): string[] {
  if (keptItems.length === 0) return []
  const items = keptItems.map(({ environment, kind, name, version }) => {
    return `    ${printable(environment)}: ${kind} ${printable(name)}, version ${version}`
  })
  return ['Deployed, but not in this file. These stay; --prune undeploys them:', ...items]
}

function writeLine({ kind, name, version, changed }: Write): string {
  const item = `${kind} ${printable(name)}`
  if (changed === null) return green(`  + ${item}: create version ${version}`)
  return yellow(`  ~ ${item}: new version ${version} (${changed.join(', ')})`)
}

/** Lines about shares in the file that do not start again. */
export function notRestartedLines(shares: readonly NotRestarted[]): string[] {
  return shares.map(
    ({ environment, name, version, by }) =>
      `The share of version ${version} of prompt ${printable(name)} in ${printable(environment)} was ended by ${printable(by)}; it does not start again. ` +
      `Take it out of the file, or start it with \`tacho prompts deploy\`.`,
  )
}

function changeLine({ kind, name, from, to, share }: DeploymentChange): string {
  const item = `${kind} ${printable(name)}`
  if (share === 0) return red(`  - ${item}: end the share of version ${to}`)
  if (share !== undefined) return yellow(`  ~ ${item}: version ${to} for ${share} % of sessions`)
  if (to === null) return red(`  - ${item}: undeploy (was version ${from})`)
  if (from === null) return green(`  + ${item}: deploy version ${to}`)
  return yellow(`  ~ ${item}: version ${from} -> ${to}`)
}

type Changes = Omit<Plan, 'kept' | 'notRestarted'>

function summary({ restores, writes, deployments, labels }: Changes): string {
  const created = writes.filter(({ changed }) => changed === null).length
  const changes = deployments.flatMap((deployment) => deployment.changes)
  const removed = changes.filter(({ to }) => to === null).length
  const parts = [
    restores.length > 0 ? `${restores.length} restored` : '',
    created > 0 ? `${created} created` : '',
    writes.length > created ? counted(writes.length - created, 'new version') : '',
    changes.length > removed ? `${changes.length - removed} deployed` : '',
    removed > 0 ? `${removed} undeployed` : '',
    labels.length > 0 ? `labels of ${counted(labels.length, 'environment')} changed` : '',
  ]
  return `Plan: ${parts.filter((planPart) => planPart !== '').join(', ')}.`
}

const painted = (colour: 'green' | 'yellow' | 'red') => (text: string) =>
  styleText(colour, text, { stream: process.stdout })
const green = painted('green')
const yellow = painted('yellow')
const red = painted('red')

/** The changes of new versions, line by line. */

export type WriteDiff = Pick<VersionDiff, 'fields'>

function diffKey({ kind, name }: Pick<Write, 'kind' | 'name'>): string {
  return `${kind} ${name}`
}

/** The differences from the newest versions, by `diffKey`. New prompts and policies have no differences. */
export async function readDiffs(
  client: OperatorClient,
  workspaceId: string,
  manifest: Manifest,
  present: Present,
  { writes }: Plan,
): Promise<Map<string, WriteDiff>> {
  const diffs = new Map<string, WriteDiff>()
  for (const write of writes) {
    if (write.changed === null) continue
    const fields =
      write.kind === 'policy'
        ? await policyDiff(manifest, present, write)
        : await promptDiff(client, workspaceId, manifest, present, write)
    diffs.set(diffKey(write), { fields })
  }
  return diffs
}

function policyDiff({ policies }: Manifest, present: Present, { name }: Write): Promise<WriteDiff['fields']> {
  const textOf = (value: string | number | null | undefined) =>
    typeof value === 'number' ? String(value) : (value ?? null)
  const texts = (policy: Partial<Record<(typeof POLICY_FIELDS)[number], string | number | null>> | undefined) =>
    Object.fromEntries(POLICY_FIELDS.map((field) => [field, textOf(policy?.[field])]))
  return diffFields(texts(present.policies.get(name)?.newest), texts(policies.get(name)))
}

async function promptDiff(
  client: OperatorClient,
  workspaceId: string,
  { prompts }: Manifest,
  present: Present,
  { name }: Write,
): Promise<WriteDiff['fields']> {
  const known = present.prompts.get(name)
  if (known === undefined) return []
  const params = { workspaceId, promptId: known.promptId, version: known.newest.version }
  const { content } = await client.readPromptVersion({ params })
  return diffFields({ content }, { content: prompts.get(name)?.content ?? '' })
}
