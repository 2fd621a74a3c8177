/** Replacements for the tape's versions in a replay: prompt versions, and policies from a file or an environment. */
import { eachItem } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { Option, type Command } from 'commander'
import type { LocalPolicy } from '../../../../sdk/src/guard/rules.ts'
import type { OperatorClient } from '../../engine/operator-client.ts'
import { wrongUsage } from '../../engine/stop.ts'
import { manifestOf } from '../../policies/apply/read-manifest.ts'
import { findItem } from '../../policies/versioned-item.ts'
import { findPlace } from '../../tenants/tenants.ts'
import { servedVersion } from './read-run.ts'
import type { Tape, TapePrompt } from './tape.ts'

export interface ReplacementOptions {
  prompt?: string[]
  policies?: string
  policiesOf?: string
}

export interface Replacements {
  prompts: TapePrompt[]
  /** Null: the tape's own policies. */
  policies: LocalPolicy[] | null
  /** Labels of tools. Null: the tape's own labels. */
  labels: readonly ToolLabel[] | null
}

type Rules = Pick<Replacements, 'policies' | 'labels'>
const OF_THE_TAPE: Rules = { policies: null, labels: null }

export function withReplacements(command: Command): Command {
  return command
    .addOption(
      new Option('--prompt <name@version>', 'serve this version of a prompt, such as greeting@5; may repeat').argParser(
        (name: string, earlier: string[] | undefined) => [...(earlier ?? []), name],
      ),
    )
    .option('--policies <file>', 'policies and labels of this file of `tacho apply`, instead of those of the tape')
    .addOption(
      new Option(
        '--policies-of <environment>',
        'policies and labels that this environment has now, instead of those of the tape',
      ).conflicts('policies'),
    )
}

/** @param connected is called only if the service is needed. @param environment its workspace has the prompts. */
export async function replacementsOf(
  { prompt = [], policies, policiesOf }: ReplacementOptions,
  connected: () => OperatorClient,
  environment?: string,
): Promise<Replacements> {
  const deployed = policiesOf === undefined ? OF_THE_TAPE : await deployedRules(connected(), policiesOf)
  const rules = policies === undefined ? deployed : await fileRules(policies)
  if (prompt.length === 0) return { prompts: [], ...rules }
  const client = connected()
  const { workspace } = await findPlace(client, environment ?? policiesOf, '--environment')
  const prompts = await Promise.all(prompt.map((name) => promptVersion(client, workspace.id, name)))
  return { prompts, ...rules }
}

async function fileRules(file: string): Promise<Rules> {
  const { policies, labels } = await manifestOf(file)
  const served = [...policies].map(([policyId, policy]): LocalPolicy => {
    return { policyId, ...servedVersion({ ...policy, version: 'file' }) }
  })
  return { policies: served, labels: labels as readonly ToolLabel[] | null }
}

async function deployedRules(client: OperatorClient, named: string): Promise<Rules> {
  const { workspace, environment } = await findPlace(client, named, '--policies-of')
  const place = { params: { environmentId: environment.id }, query: { limit: LIMITS.operatorPageMax } }
  const policies: LocalPolicy[] = []
  for await (const { kind, id: policyId, version } of eachItem(client.listDeployments, place)) {
    if (kind !== 'policy') continue
    const policy = await client.readPolicyVersion({ params: { workspaceId: workspace.id, policyId, version } })
    policies.push({ policyId, ...servedVersion(policy) })
  }
  const { labels } = await client.readToolLabels({ params: place.params })
  return { policies, labels }
}

async function promptVersion(client: OperatorClient, workspaceId: string, named: string): Promise<TapePrompt> {
  const at = named.lastIndexOf('@')
  const [wantedName, wantedVersion] = at > 0 ? [named.slice(0, at), named.slice(at + 1)] : [named, undefined]
  if (wantedVersion !== undefined && !/^[1-9]\d{0,8}$/.test(wantedVersion))
    throw wrongUsage(`--prompt ${JSON.stringify(named)} must be a name and a version, such as greeting@5.`)
  const { id: promptId, name, newest } = await findItem(client, workspaceId, 'prompt', wantedName)
  const version = wantedVersion ?? newest
  const read = await client.readPromptVersion({ params: { workspaceId, promptId, version } })
  return { name, promptId, version, versionId: read.versionId, hash: read.contentHash, content: read.content }
}

export function withPrompts(tape: Tape, prompts: readonly TapePrompt[]): Tape {
  const names = new Set(prompts.map(({ name }) => name))
  const others = tape.head.prompts.filter(({ name }) => !names.has(name))
  return { ...tape, head: { ...tape.head, prompts: [...others, ...prompts] } }
}
