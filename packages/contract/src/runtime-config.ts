import Type, { type Static } from 'typebox'
import { nullableText, uuid } from './fields.ts'

/** From the least to the most severe. */
export const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
export const Severity = Type.Enum([...SEVERITIES], { $id: 'Severity' })
export type Severity = (typeof SEVERITIES)[number]

/** What a policy does with a matching tool call, from the laxest to the strictest. */
export const POLICY_ACTIONS = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK'] as const
export const PolicyAction = Type.Enum([...POLICY_ACTIONS], { $id: 'PolicyAction' })
export type PolicyAction = (typeof POLICY_ACTIONS)[number]

export const RuntimePrompt = Type.Object(
  {
    promptId: uuid('Prompt id'),
    name: Type.String(),
    versionId: uuid('Send it as `promptVersionId` with what this version causes'),
    version: Type.String(),
    content: Type.String({ description: 'As it was written' }),
    contentHash: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of the UTF-8 bytes of `content`, in lower-case hex',
    }),
  },
  { $id: 'RuntimePrompt', description: 'The version of a prompt that is in force' },
)
export type RuntimePrompt = Static<typeof RuntimePrompt>

export const RuntimePolicy = Type.Object(
  {
    policyId: Type.String(),
    name: Type.String(),
    description: nullableText('What it is for'),
    version: Type.String(),
    condition: Type.String({ description: 'CEL expression, as it was written; evaluated by the client' }),
    severity: Severity,
    action: PolicyAction,
  },
  { $id: 'RuntimePolicy', description: 'The version of a policy that is in force' },
)
export type RuntimePolicy = Static<typeof RuntimePolicy>

/** Runtime configuration (interface: "Runtime configuration"). */
export const RuntimeConfig = Type.Object(
  {
    revision: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of this object without `revision`, as canonical JSON (RFC 8785), in lower-case hex',
    }),
    prompts: Type.Array(RuntimePrompt, { description: 'By name' }),
    policies: Type.Array(RuntimePolicy, { description: 'By policy id' }),
  },
  { $id: 'RuntimeConfig', description: 'The prompts and policies that are in force in an environment' },
)
export type RuntimeConfig = Static<typeof RuntimeConfig>
