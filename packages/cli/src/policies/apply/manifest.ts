/** The validated content of tacho.yaml. */
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { GrantRule, OnError } from '@tacho/contract/engine/words.ts'

export interface Manifest {
  /** Null: use the only workspace. */
  workspace: string | null
  /** Labels of tools; null: the file does not mention labels. */
  labels: readonly ToolLabels[] | null
  /** By name. */
  prompts: Map<string, WantedPrompt>
  /** By id. */
  policies: Map<string, WantedPolicy>
  /** By name. */
  environments: Map<string, WantedEnvironment>
}

export interface WantedPrompt {
  content: string
  place: Place
}

/** Fields of a policy version, in the order in which a plan names their changes. */
export const POLICY_FIELDS = [
  'condition',
  'severity',
  'action',
  'onError',
  'approvers',
  'grants',
  'template',
  'name',
  'description',
] as const

export interface WantedPolicy {
  name: string
  description: string | null
  condition: string
  severity: Severity
  action: PolicyAction
  onError: OnError
  /** Whether the file contains `onError`. Without it, a version that is older than this field stays unchanged. */
  saysOnError: boolean
  /** Number of different people who must approve a call. */
  approvers: 1 | 2
  /** Whether approvers may also allow later calls. */
  grants: GrantRule
  /** The text of its approval requests; null: derived from the input and the condition. */
  template: string | null
  place: Place
}

export interface WantedEnvironment {
  place: Place
  /** By name; null: keep the prompts of the environment unchanged. */
  prompts: Map<string, WantedVersion> | null
  /** By id; null: keep the policies of the environment unchanged. */
  policies: Map<string, WantedVersion> | null
}

/** A wanted version. Null: the newest one, as in the file. */
export interface WantedVersion {
  version: string | null
  /**
   * A prompt's share: another version for a part of the sessions. 0 percent: no share. Absent: the file does not
   * contain it.
   */
  share?: WantedShare
  place: Place
}

export interface WantedShare {
  version: string | null
  percent: number
}

/** Position in the file, from 1. */
export interface Place {
  line: number
  column: number
}

export interface FileFault {
  place: Place
  message: string
}
