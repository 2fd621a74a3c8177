/** The ready sets of examples/policies, as the build read them, and what the API gets of them. */
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
  /** Purpose of the set. */
  readonly about: string
  readonly labels?: readonly ToolLabel[]
  readonly policies: Readonly<Record<string, ReadyPolicy>>
  readonly examples: readonly (ExampleCall & { readonly name?: string })[]
}

/** vite.config.ts defines it. */
declare const READY_SETS: readonly ReadySet[]
export const READY = READY_SETS

/** The body that creates it, as `tacho apply` would. */
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

/** Rules of tools that the set does not name stay: policies of others read them. As `tacho apply`. */
export function mergedLabels(present: readonly ToolLabel[], labels: readonly ToolLabel[]): ToolLabel[] {
  const named = new Set(labels.map(({ tool }) => tool))
  return [...present.filter(({ tool }) => !named.has(tool)), ...labels]
}
