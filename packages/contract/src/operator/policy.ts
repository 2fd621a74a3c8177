import Type, { type Static } from 'typebox'
import { nextCursor, nullableText, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { PolicyAction, Severity } from '../runtime-config.ts'
import { followsField, isNew, newVersionFields, Version, versionFields } from './version.ts'

const policyVersionFields = {
  policyId: Type.String(),
  ...versionFields,
  name: Type.String({ description: 'For people; the policy id where none was given' }),
  description: nullableText('What it is for'),
  condition: Type.String({ description: 'CEL expression, as it was written' }),
  severity: Severity,
  action: PolicyAction,
}

export const PolicyVersion = Type.Object(policyVersionFields, { description: 'A version of a policy' })
export type PolicyVersion = Static<typeof PolicyVersion>

export const Policy = Type.Object(
  {
    policyId: Type.String({ description: 'Unique in the workspace' }),
    workspaceId: uuid('Its workspace'),
    createdAt: time('When it was created'),
    newest: PolicyVersion,
  },
  { description: 'A policy and its newest version' },
)
export type Policy = Static<typeof Policy>

export const PolicyPage = Type.Object({ items: Type.Array(Policy), nextCursor })

export const PolicyVersionPage = Type.Object({ items: Type.Array(PolicyVersion), nextCursor })

export const SavedPolicyVersion = Type.Object({ ...policyVersionFields, isNew })
export type SavedPolicyVersion = Static<typeof SavedPolicyVersion>

/** Lower case only, so that no two ids differ by case alone; they stand in addresses and file names too. */
export const POLICY_ID_PATTERN = `^[a-z0-9][a-z0-9._-]{0,${LIMITS.policyIdChars - 1}}$`

const optionalText = (maxLength: number, description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength, description }))

export const Condition = Type.String({
  minLength: 1,
  description: 'CEL expression over the tool call, of type bool. Served as it is written here',
})

const newPolicyVersionFields = {
  name: optionalText(LIMITS.nameChars, 'For people; the policy id when absent'),
  description: optionalText(LIMITS.descriptionChars, 'What it is for'),
  condition: Condition,
  severity: Severity,
  action: PolicyAction,
  ...newVersionFields,
}

export const NewPolicy = Type.Object({
  policyId: Type.String({
    pattern: POLICY_ID_PATTERN,
    description: 'Unique in the workspace, for ever: lower-case letters, digits, dots, dashes and underscores',
  }),
  ...newPolicyVersionFields,
})
export type NewPolicy = Static<typeof NewPolicy>

export const NewPolicyVersion = Type.Object({ ...newPolicyVersionFields, ...followsField })
export type NewPolicyVersion = Static<typeof NewPolicyVersion>

export const PolicyParams = Type.Object({ workspaceId: uuid('Workspace id'), policyId: Type.String() })

export const PolicyVersionParams = Type.Object({ ...PolicyParams.properties, version: Version })
