/** What a person writes before it is a version. */
import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { messageOf, purposeOf, withMessage } from '@tacho/policy/message.ts'

export interface Draft {
  name: string
  /** The description without the message. */
  purpose: string
  message: string
  condition: string
  severity: PolicyVersion['severity']
  action: PolicyVersion['action']
  onError: NonNullable<PolicyVersion['onError']>
}

export const EMPTY_DRAFT: Draft = {
  name: '',
  purpose: '',
  message: '',
  condition: '',
  severity: 'MEDIUM',
  action: 'REQUIRE_APPROVAL',
  onError: 'act',
}

export const draftOf = ({ name, description, condition, severity, action, onError }: PolicyVersion): Draft => ({
  name,
  purpose: purposeOf(description) ?? '',
  message: messageOf(description) ?? '',
  condition,
  severity,
  action,
  // Written before this could be set: the severity decides.
  onError: onError ?? (severity === 'HIGH' || severity === 'CRITICAL' ? 'act' : 'ignore'),
})

/** The body for the API. An empty text becomes null. */
export const bodyOf = (draft: Draft, note: string) => ({
  name: draft.name.trim() || null,
  description: withMessage(draft.purpose.trim() || null, draft.message),
  condition: draft.condition,
  severity: draft.severity,
  action: draft.action,
  onError: draft.onError,
  note: note.trim() || null,
})

export const isSame = (one: Draft, other: Draft): boolean =>
  (Object.keys(one) as (keyof Draft)[]).every((key) => one[key] === other[key])
