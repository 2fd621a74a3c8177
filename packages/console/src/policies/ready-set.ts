/** The ready sets in examples/policies, which the build includes, and the API bodies that create them. */
import { defaultOnError, type OnError } from '@tacho/contract/engine/words.ts'
import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import type { ExampleCall } from '@tacho/policy/history/example-call.ts'

export interface ReadyPolicy {
  readonly name?: string
  readonly description?: string
  readonly condition: string
  readonly severity: PolicyVersion['severity']
  readonly action: PolicyVersion['action']
  readonly onError?: OnError
}

export interface ReadySet {
  readonly name: string
  /** Describes the purpose of the set. */
  readonly about: string
  readonly labels?: readonly ToolLabel[]
  readonly policies: Readonly<Record<string, ReadyPolicy>>
  readonly examples: readonly (ExampleCall & { readonly name?: string })[]
}

/** Defined by vite.config.ts. */
declare const READY_SETS: readonly ReadySet[]
export const READY = READY_SETS

/** The body that creates a policy, as `tacho apply` sends it. */
export const policyBody = (policyId: string, policy: ReadyPolicy, set: string) => ({
  policyId,
  name: policy.name ?? null,
  description: policy.description ?? null,
  condition: policy.condition.trim(),
  severity: policy.severity,
  action: policy.action,
  onError: policy.onError ?? defaultOnError(policy),
  note: `From the ready set ${set}`,
})

/**
 * The label rules after adding those of a set. As in `tacho apply`, rules of other tools stay, because other policies
 * may read them.
 */
export function mergedLabels(present: readonly ToolLabel[], labels: readonly ToolLabel[]): ToolLabel[] {
  const named = new Set(labels.map(({ tool }) => tool))
  return [...present.filter(({ tool }) => !named.has(tool)), ...labels]
}
