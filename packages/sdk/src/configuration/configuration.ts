/** The configuration as the service sends it, checked before use. */
import { sha256 } from '../delivery/sha256.ts'

export interface ConfigurationOptions {
  /** Time between two refreshes, plus or minus 20 %. From 1,000 to 86,400,000 ms. Default: 30,000. */
  refreshMs?: number | undefined
  /**
   * Policies that the service last confirmed longer ago than this are named in each decision (`policyAgeMs`) and in a diagnostic, in
   * milliseconds. Default: 300,000.
   */
  oldAfterMs?: number | undefined
  /** A file that keeps the last valid configuration across restarts (Node, Bun, Deno). */
  cacheFile?: string | undefined
  /** Oldest file that is used, by the last time that the service confirmed it, in milliseconds. Default: no limit. */
  cacheMaxAgeMs?: number | undefined
  /** A file that the service confirmed less than this many milliseconds ago is used without asking it first. Default: 0. */
  cacheFreshMs?: number | undefined
}

interface PromptVersion {
  /** Recorded as `promptVersionId` with the events that this version causes. */
  readonly versionId: string
  readonly version: string
  readonly content: string
  /** SHA-256 of `content`, in lower-case hex. */
  readonly contentHash: string
}

/** The deployed version of a prompt. */
export interface DeployedPrompt extends PromptVersion {
  readonly promptId: string
  readonly name: string
  /** The version that `percent` of the sessions get, by a hash of the salt and the session. */
  readonly share?: PromptVersion & { readonly percent: number; readonly salt: string }
}

/** The deployed version of a policy. A newer service may send severities and actions that this SDK does not know. */
export interface DeployedPolicy {
  readonly policyId: string
  readonly name: string
  readonly description: string | null
  readonly version: string
  /** CEL expression. */
  readonly condition: string
  readonly severity: string
  readonly action: string
  /** Whether a condition that cannot be evaluated counts as matched: `act` or `ignore`; absent: by severity. */
  readonly onError?: string
}

/** Labels of tools. Rules add up. */
export interface ToolLabels {
  /** Name of the tool; one `*` stands for any characters. */
  readonly tool: string
  /** Labels of the output, for example `untrusted` or `private`. */
  readonly output?: readonly string[]
  /** Labels of what it does, for example `external`, `destructive` or `money`. */
  readonly does?: readonly string[]
  /** CEL expression on `tool.input` and `tool.output`: the rule holds only where it is true. */
  readonly when?: string
}

/** Deeply frozen. */
export interface Configuration {
  readonly revision: string
  readonly prompts: readonly DeployedPrompt[]
  readonly policies: readonly DeployedPolicy[]
  readonly toolLabels: readonly ToolLabels[]
}

export type Checked =
  | { readonly ok: true; readonly configuration: Configuration }
  | { readonly ok: false; readonly problem: string }

/**
 * Maximum number of prompts, and of policies: ten times what the service deploys. The bound matters because every
 * decision evaluates all policies.
 */
const ITEMS_MAX = 5_000

const VERSION = ['versionId', 'version', 'content', 'contentHash'] as const
const PROMPT = ['promptId', 'name', ...VERSION] as const
const SHARE = ['salt', ...VERSION] as const
const POLICY = ['policyId', 'name', 'version', 'condition', 'severity', 'action'] as const

/**
 * @internal Rejects the whole configuration for a single fault, such as a wrong hash of a prompt. Drops unknown fields.
 * Does not hash a prompt of `current` again, because hashing takes most of the time.
 */
export async function checkConfiguration(rawConfiguration: unknown, current?: Configuration | null): Promise<Checked> {
  const refuse = (problem: string): Checked => ({ ok: false, problem })
  if (!isObject(rawConfiguration)) return refuse('it is not an object')
  const { revision, prompts, policies, toolLabels = [] } = rawConfiguration
  if (typeof revision !== 'string' || revision === '') return refuse('revision is missing')
  const lists = { prompts, policies, toolLabels } as Record<'prompts' | 'policies' | 'toolLabels', unknown[]>
  for (const [name, list] of Object.entries(lists)) {
    if (!Array.isArray(list)) return refuse(`${name} is not a list`)
    if (list.length > ITEMS_MAX) return refuse(`${name} has more than ${ITEMS_MAX} items`)
  }

  const checkedPrompts: DeployedPrompt[] = []
  for (const [index, prompt] of lists.prompts.entries()) {
    const fields = textsOf(prompt, PROMPT)
    if (!fields) return refuse(`prompts[${index}] is incomplete`)
    // A newer service may send another form of share. Then all sessions get the version in force.
    const { share } = prompt as { share?: { percent?: unknown } }
    const percent = share?.percent
    const shared = typeof percent === 'number' && textsOf(share, SHARE)
    const known = current?.prompts[index]
    for (const { content, contentHash } of shared ? [fields, shared] : [fields]) {
      const isKnown = known?.contentHash === contentHash && known.content === content
      if (!isKnown && (await sha256(content)) !== contentHash) return refuse(`prompts[${index}].contentHash is wrong`)
    }
    checkedPrompts.push(Object.freeze(shared ? { ...fields, share: Object.freeze({ ...shared, percent }) } : fields))
  }
  const checkedPolicies: DeployedPolicy[] = []
  for (const [index, policy] of lists.policies.entries()) {
    const fields = textsOf(policy, POLICY)
    if (!fields) return refuse(`policies[${index}] is incomplete`)
    const { description, onError } = policy as { description?: unknown; onError?: unknown }
    checkedPolicies.push(
      Object.freeze({
        ...fields,
        ...(typeof onError === 'string' && { onError }),
        description: typeof description === 'string' ? description : null,
      }),
    )
  }
  const labels = lists.toolLabels.flatMap((item) => labelsOf(item) ?? [])
  if (labels.length < lists.toolLabels.length) return refuse('toolLabels is not a list of labels')
  const configuration = {
    revision,
    prompts: Object.freeze(checkedPrompts),
    policies: Object.freeze(checkedPolicies),
    toolLabels: Object.freeze(labels),
  }
  return { ok: true, configuration: Object.freeze(configuration) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function labelsOf(value: unknown): ToolLabels | undefined {
  if (!isObject(value)) return undefined
  const { tool, output = [], does = [], when } = value
  const hasWhen = typeof when === 'string'
  if (typeof tool !== 'string' || !isTexts(output) || !isTexts(does) || !(hasWhen || when === undefined))
    return undefined
  const lists = { output: Object.freeze([...output]), does: Object.freeze([...does]) }
  return Object.freeze({ tool, ...lists, ...(hasWhen && { when }) })
}

function isTexts(list: unknown): list is string[] {
  return Array.isArray(list) && list.every((label) => typeof label === 'string')
}

/** Undefined unless all of these members are texts. */
function textsOf<Name extends string>(value: unknown, names: readonly Name[]): Record<Name, string> | undefined {
  if (!isObject(value)) return undefined
  const fields = {} as Record<Name, string>
  for (const name of names) {
    const text = value[name]
    if (typeof text !== 'string') return undefined
    fields[name] = text
  }
  return fields
}
