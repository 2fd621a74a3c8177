/** What new versions change, line by line. */
import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { diffFields } from '@tacho/server/domain/policies/diff.ts'
import type { OperatorClient } from '../../engine/operator-client.ts'
import type { Manifest } from './manifest.ts'
import { POLICY_FIELDS, type Plan, type Present, type Write } from './plan.ts'

export type WriteDiff = Pick<VersionDiff, 'fields'>

export function diffKey({ kind, name }: Pick<Write, 'kind' | 'name'>): string {
  return `${kind} ${name}`
}

/** The differences from the newest versions, by `diffKey`. New prompts and policies have none. */
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
  const texts = (policy: Partial<Record<(typeof POLICY_FIELDS)[number], string | null>> | undefined) =>
    Object.fromEntries(POLICY_FIELDS.map((field) => [field, policy?.[field] ?? null]))
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
