import Type, { type Static } from 'typebox'
import { nextCursor, nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { ON_ERRORS, POLICY_ID_PATTERN, type OnError } from '../engine/words.ts'
import { PolicyAction, Severity } from './runtime-config.ts'
import { damaged, followsField, isNew, newVersionFields, Version, versionFields } from './version.ts'

const policyVersionFields = {
  policyId: Type.String(),
  ...versionFields,
  name: Type.String({ description: 'Display name; defaults to the policy id' }),
  description: nullableText('Purpose of the policy'),
  condition: Type.String({ description: 'CEL expression, unchanged' }),
  severity: Severity,
  action: PolicyAction,
  onError: Type.Unsafe<OnError | null>({
    enum: [...ON_ERRORS, null],
    description:
      'What a condition that cannot be evaluated counts as: `act` as a match, `ignore` as none. null: written before this ' +
      'could be set; `act` with severity HIGH or CRITICAL, else `ignore`',
  }),
  damaged,
}

export const PolicyVersion = Type.Object(policyVersionFields, {
  $id: 'PolicyVersion',
  description: 'A version of a policy',
})
export type PolicyVersion = Static<typeof PolicyVersion>

export const Policy = Type.Object(
  {
    policyId: Type.String({ description: 'Unique in the workspace' }),
    workspaceId: uuid('Its workspace'),
    createdAt: time('When it was created'),
    archivedAt: nullableTime('When it was archived; null: it can be deployed'),
    newest: PolicyVersion,
  },
  { $id: 'Policy', description: 'A policy and its newest version' },
)
export type Policy = Static<typeof Policy>

export const PolicyPage = Type.Object({ items: Type.Array(Policy), nextCursor }, { $id: 'PolicyPage' })

export const PolicyVersionPage = Type.Object(
  { items: Type.Array(PolicyVersion), nextCursor },
  { $id: 'PolicyVersionPage' },
)

export const SavedPolicyVersion = Type.Object({ ...policyVersionFields, isNew }, { $id: 'SavedPolicyVersion' })
export type SavedPolicyVersion = Static<typeof SavedPolicyVersion>

const optionalText = (maxLength: number, description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength, description }))

export const Condition = Type.String({
  $id: 'Condition',
  minLength: 1,
  description: 'CEL expression over the tool call, of type bool. Stored and served unchanged',
})

export const givenOnError = Type.Optional(
  Type.Unsafe<OnError | null>({
    enum: [...ON_ERRORS, null],
    description:
      'What a condition that cannot be evaluated counts as: `act` as a match, `ignore` as none. Default: `act` for BLOCK and ' +
      'REQUIRE_APPROVAL; for ALLOW and WARN, `act` with severity HIGH or CRITICAL, else `ignore`',
  }),
)

const newPolicyVersionFields = {
  name: optionalText(LIMITS.nameChars, 'Display name; defaults to the policy id'),
  description: optionalText(LIMITS.descriptionChars, 'Purpose of the policy'),
  condition: Condition,
  severity: Severity,
  action: PolicyAction,
  onError: givenOnError,
  ...newVersionFields,
}

export const NewPolicy = Type.Object(
  {
    policyId: Type.String({
      pattern: POLICY_ID_PATTERN,
      description: 'Unique in the workspace and permanent: lower-case letters, digits, dots, dashes and underscores',
    }),
    ...newPolicyVersionFields,
  },
  {
    $id: 'NewPolicy',
    examples: [
      {
        policyId: 'refund-limit',
        name: 'Refund limit',
        condition: 'tool.name == "refund" && tool.input.amount > 100.0',
        severity: 'HIGH',
        action: 'REQUIRE_APPROVAL',
        onError: 'act',
        note: 'First version',
      },
    ],
  },
)
export type NewPolicy = Static<typeof NewPolicy>

export const NewPolicyVersion = Type.Object(
  { ...newPolicyVersionFields, ...followsField },
  {
    $id: 'NewPolicyVersion',
    examples: [
      {
        condition: 'tool.name == "refund" && tool.input.amount > 50.0',
        severity: 'HIGH',
        action: 'REQUIRE_APPROVAL',
        note: 'A lower limit',
        follows: '1',
      },
    ],
  },
)
export type NewPolicyVersion = Static<typeof NewPolicyVersion>

export const PolicyParams = Type.Object({ workspaceId: uuid('Workspace id'), policyId: Type.String() })

export const PolicyVersionParams = Type.Object({ ...PolicyParams.properties, version: Version })
