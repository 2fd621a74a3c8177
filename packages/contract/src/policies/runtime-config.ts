import Type, { type Static } from 'typebox'
import { nullableText, uuid } from '../web/fields.ts'
import { ToolLabel } from './tool-labels.ts'
import { LIMITS } from '../engine/limits.ts'
import { ON_ERRORS, POLICY_ACTIONS, SEVERITIES, WAIT_HEADER } from '../engine/words.ts'

export const Severity = Type.Enum([...SEVERITIES], { $id: 'Severity' })
export type Severity = (typeof SEVERITIES)[number]

export const PolicyAction = Type.Enum([...POLICY_ACTIONS], { $id: 'PolicyAction' })
export type PolicyAction = (typeof POLICY_ACTIONS)[number]

export const OnError = Type.Enum([...ON_ERRORS], {
  $id: 'OnError',
  description:
    'What a condition that cannot be evaluated counts as: `act` as a match, `ignore` as none. A condition that reads an ' +
    'input that cannot be read always counts as a match',
})

const version = {
  versionId: uuid('Send it as `promptVersionId` in reports about runs that used this version'),
  version: Type.String(),
  content: Type.String({ description: 'Prompt text, unchanged' }),
  contentHash: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: 'SHA-256 of the UTF-8 bytes of `content`, in lower-case hex',
  }),
}

export const SharePercent = Type.Integer({ minimum: 1, maximum: 99, description: 'Percentage of sessions' })

export const RuntimePrompt = Type.Object(
  {
    promptId: uuid('Prompt id'),
    name: Type.String(),
    ...version,
    share: Type.Optional(
      Type.Object(
        { percent: SharePercent, salt: Type.String({ description: 'Of the hash of a session' }), ...version },
        {
          description:
            'Another version that a part of the sessions gets. Clients that do not know this member use the version beside it. ' +
            'docs/sdk/runtime-configuration.md has the hash',
        },
      ),
    ),
  },
  { $id: 'RuntimePrompt', description: 'The deployed version of a prompt' },
)
export type RuntimePrompt = Static<typeof RuntimePrompt>

export const RuntimePolicy = Type.Object(
  {
    policyId: Type.String(),
    name: Type.String(),
    description: nullableText('Purpose of the policy'),
    version: Type.String(),
    condition: Type.String({ description: 'CEL expression, unchanged; the client evaluates it' }),
    severity: Severity,
    action: PolicyAction,
    onError: Type.Optional(
      Type.Enum([...ON_ERRORS], { description: 'Absent: `act` with severity HIGH or CRITICAL, else `ignore`' }),
    ),
  },
  { $id: 'RuntimePolicy', description: 'The deployed version of a policy' },
)
export type RuntimePolicy = Static<typeof RuntimePolicy>

/** Runtime configuration (interface: "Runtime configuration"). */
export const RuntimeConfig = Type.Object(
  {
    revision: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of this object without `revision`, as canonical JSON (RFC 8785), in lower-case hex',
    }),
    prompts: Type.Array(RuntimePrompt, { description: 'Sorted by name' }),
    policies: Type.Array(RuntimePolicy, {
      description: 'Sorted by policy id. A stop in effect is one of them: its id is `stop:` and the id of the stop',
    }),
    toolLabels: Type.Optional(
      Type.Array(ToolLabel, { description: 'Labels of tools, in the order in which they were given. Absent: none' }),
    ),
  },
  { $id: 'RuntimeConfig', description: 'The deployed prompts and policies of an environment' },
)
export type RuntimeConfig = Static<typeof RuntimeConfig>

export const RuntimeConfigQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.configurationWaitSecondsMax,
      description:
        `With If-None-Match: seconds to wait while the configuration is unchanged. The reply comes as soon as it changes, else as 304 at the end; ` +
        `at once if very many wait. A reply with the header ${WAIT_HEADER} offers it, and says for how long`,
    }),
  ),
})
