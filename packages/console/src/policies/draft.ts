/** The draft of a policy version, also from a recorded call. */
import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { messageOf, purposeOf, withMessage } from '@tacho/policy/message.ts'
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { compileCondition } from '@tacho/policy/compile.ts'

export interface Draft extends Pick<PolicyVersion, 'name' | 'condition' | 'severity' | 'action' | 'grants'> {
  /** The description without the message. */
  purpose: string
  message: string
  onError: NonNullable<PolicyVersion['onError']>
  approvers: 1 | 2
  template: string
}

export const EMPTY_DRAFT: Draft = {
  name: '',
  purpose: '',
  message: '',
  condition: '',
  severity: 'MEDIUM',
  action: 'REQUIRE_APPROVAL',
  onError: 'act',
  approvers: 1,
  grants: 'allow',
  template: '',
}

export const draftOf = ({
  name,
  description,
  condition,
  severity,
  action,
  onError,
  approvers,
  grants,
  template,
}: PolicyVersion): Draft => ({
  name,
  purpose: purposeOf(description) ?? '',
  message: messageOf(description) ?? '',
  condition,
  severity,
  action,
  // Written before this could be set: the severity decides.
  onError: onError ?? (severity === 'HIGH' || severity === 'CRITICAL' ? 'act' : 'ignore'),
  approvers: approvers === 2 ? 2 : 1,
  grants,
  template: template ?? '',
})

/** The body for the API. An empty text becomes null. */
export const bodyOf = ({ purpose, message, ...version }: Draft, note: string) => ({
  ...version,
  name: version.name.trim() || null,
  description: withMessage(purpose.trim() || null, message),
  approvers: version.action === 'REQUIRE_APPROVAL' ? version.approvers : (1 as const),
  // An empty text removes the template of the previous version.
  template: version.action === 'REQUIRE_APPROVAL' ? version.template.trim() : '',
  note: note.trim() || null,
})

export const isSame = (one: Draft, other: Draft): boolean =>
  (Object.keys(one) as (keyof Draft)[]).every((key) => one[key] === other[key])

/** A recorded call as the beginning of a condition. Pure. */

export interface Call {
  /** Calls of the same tool. */
  condition: string
  /** Conditions that can be added: a field of the input as it was in this call, or more fields. */
  fields: readonly string[]
}

const FIELDS = 8
/** A longer text is compared by its beginning. */
const TEXT_CHARS = 60
const START_CHARS = 30

/** Null: the payload is of no call. */
export function callOf(payload: unknown): Call | null {
  const tool = isObject(payload) ? textAt(payload, 'toolName') : null
  if (!isObject(payload) || tool === null) return null
  const condition = `tool.name == ${JSON.stringify(tool)}`
  if (!compileCondition(condition).ok) return null
  const input: Json = isObject(payload['input']) ? payload['input'] : {}
  const fields = Object.entries(input)
    .flatMap(([name, value]) => comparison(`tool.input.${name}`, value))
    .filter((field) => compileCondition(field).ok)
  return { condition, fields: fields.slice(0, FIELDS) }
}

function comparison(field: string, value: unknown): string[] {
  if (typeof value === 'boolean') return [value ? field : `!${field}`]
  // A number is a double: 5 is written 5.0.
  if (typeof value === 'number') return [`${field} >= ${Number.isInteger(value) ? `${value}.0` : value}`]
  if (typeof value !== 'string' || value === '') return []
  if (value.length <= TEXT_CHARS) return [`${field} == ${JSON.stringify(value)}`]
  return [`${field}.startsWith(${JSON.stringify(value.slice(0, START_CHARS).toWellFormed())})`]
}
