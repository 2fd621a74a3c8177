/** The validated content of tacho.yaml. */
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import type { GrantRule, OnError } from '@tacho/contract/engine/words.ts'

export interface Manifest {
  /** Null: the only workspace. */
  workspace: string | null
  /** Labels of tools; null: the file has none. */
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
  /** The file says it. Otherwise a version that was written before it existed stays as it is. */
  saysOnError: boolean
  /** Different people who must approve a call. */
  approvers: 1 | 2
  /** Whether approvers may also allow calls to come. */
  grants: GrantRule
  /** How its requests read; null: found from the input and the condition. */
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

/** Null: the newest version, as in the file. */
export interface WantedVersion {
  version: string | null
  /** A prompt's share: another version for a part of the sessions. 0 percent: no share. Absent: the file does not mention it. */
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
