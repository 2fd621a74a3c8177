/** What tacho.yaml says, checked. */
import type { PolicyAction, Severity } from '@tacho/contract/runtime-config.ts'

export interface Manifest {
  /** Null: the only one. */
  workspace: string | null
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

export interface WantedPolicy {
  name: string
  description: string | null
  condition: string
  severity: Severity
  action: PolicyAction
  place: Place
}

export interface WantedEnvironment {
  place: Place
  /** By name; null: prompts of the environment are left alone. */
  prompts: Map<string, WantedVersion> | null
  /** By id; null: policies of the environment are left alone. */
  policies: Map<string, WantedVersion> | null
}

/** Null: the newest, which is what the file says. */
export interface WantedVersion {
  version: string | null
  place: Place
}

/** Where it stands in the file, from 1. */
export interface Place {
  line: number
  column: number
}

export interface FileFault {
  place: Place
  message: string
}
