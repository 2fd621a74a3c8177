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

/** The deployed version of a prompt. */
export interface DeployedPrompt {
  readonly promptId: string
  readonly name: string
  /** Recorded as `promptVersionId` with the events that this version causes. */
  readonly versionId: string
  readonly version: string
  readonly content: string
  /** SHA-256 of `content`, in lower-case hex. */
  readonly contentHash: string
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
  /** One `*` stands for any characters. */
  readonly tool: string
  /** Of the output, for example `untrusted` or `private`. */
  readonly output?: readonly string[]
  /** Of what it does, for example `external`, `destructive` or `money`. */
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

/** Most prompts, and most policies. Ten times what the service deploys; every policy takes time in every decision. */
const ITEMS_MAX = 5_000

const PROMPT = ['promptId', 'name', 'versionId', 'version', 'content', 'contentHash'] as const
const POLICY = ['policyId', 'name', 'version', 'condition', 'severity', 'action'] as const

/**
 * @internal One fault, such as a wrong hash of a prompt, rejects the whole configuration. Unknown fields are dropped.
 */
export async function checkConfiguration(rawConfiguration: unknown): Promise<Checked> {
  const refuse = (problem: string): Checked => ({ ok: false, problem })
  if (!isObject(rawConfiguration)) return refuse('it is not an object')
  const { revision, prompts, policies, toolLabels = [] } = rawConfiguration
  if (typeof revision !== 'string' || revision === '') return refuse('revision is missing')
  if (!Array.isArray(prompts)) return refuse('prompts is not a list')
  if (!Array.isArray(policies)) return refuse('policies is not a list')
  if (prompts.length > ITEMS_MAX) return refuse(`prompts has more than ${ITEMS_MAX} items`)
  if (policies.length > ITEMS_MAX) return refuse(`policies has more than ${ITEMS_MAX} items`)

  const checkedPrompts: DeployedPrompt[] = []
  for (const [index, prompt] of prompts.entries()) {
    const fields = textsOf(prompt, PROMPT)
    if (!fields) return refuse(`prompts[${index}] is incomplete`)
    if ((await sha256(fields.content)) !== fields.contentHash) return refuse(`prompts[${index}].contentHash is wrong`)
    checkedPrompts.push(Object.freeze(fields))
  }
  const checkedPolicies: DeployedPolicy[] = []
  for (const [index, policy] of policies.entries()) {
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
  if (!Array.isArray(toolLabels) || toolLabels.length > ITEMS_MAX || !toolLabels.every(isToolLabels)) {
    return refuse('toolLabels is not a list of labels')
  }
  const configuration = {
    revision,
    prompts: Object.freeze(checkedPrompts),
    policies: Object.freeze(checkedPolicies),
    toolLabels: Object.freeze(toolLabels.map(frozenLabels)),
  }
  return { ok: true, configuration: Object.freeze(configuration) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isToolLabels(value: unknown): value is ToolLabels {
  if (!isObject(value)) return false
  const { tool, output = [], does = [], when = '' } = value
  const lists = [output, does]
  return (
    typeof tool === 'string' &&
    typeof when === 'string' &&
    lists.every((list) => Array.isArray(list) && list.every((label) => typeof label === 'string'))
  )
}

function frozenLabels({ tool, output = [], does = [], when }: ToolLabels): ToolLabels {
  const lists = { output: Object.freeze([...output]), does: Object.freeze([...does]) }
  return Object.freeze({ tool, ...lists, ...(when !== undefined && { when }) })
}

/** Undefined unless all of them are texts. */
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
