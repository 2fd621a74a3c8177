/** The draft of a policy version, from an existing one or from a recorded call. */
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
  // A version that is older than this field: the severity decides.
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

/** Conditions from a recorded call. Pure. */

export interface Call {
  /** Matches calls of the same tool. */
  condition: string
  /** Conditions to add: a field of the input has the value of this call, or several fields do. */
  fields: readonly string[]
}

const FIELDS = 8
/** Characters of a text to compare. A longer text is compared by its beginning. */
const TEXT_CHARS = 60
const START_CHARS = 30

/** Null if the payload is not that of a call. */
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
  // Numbers are doubles, so 5 is written 5.0.
  if (typeof value === 'number') return [`${field} >= ${Number.isInteger(value) ? `${value}.0` : value}`]
  if (typeof value !== 'string' || value === '') return []
  if (value.length <= TEXT_CHARS) return [`${field} == ${JSON.stringify(value)}`]
  return [`${field}.startsWith(${JSON.stringify(value.slice(0, START_CHARS).toWellFormed())})`]
}
