import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { RAN_STATUSES, WITHDRAWN_REASONS, type RanStatus } from '@tacho/contract/engine/words.ts'
import type { ApprovalNote } from '../../storage/approvals/approvals.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import { hasAtMost, isStorableText } from '../web/text.ts'

const KINDS = new Map<string, ApprovalNote['kind']>([
  ['POLICY_DECISION', 'input'],
  ['APPROVAL_WITHDRAWN', 'withdrawn'],
  ['TOOL_START', 'ran'],
  ['TOOL_CALL', 'ran'],
])
/** A decision names the policies that matched. */
const VERSIONS_KEPT = 50

/** What an event says about the approval that it names; null: nothing. */
export function approvalNoteOf(eventType: string, payload: Json): ApprovalNote | null {
  const kind = KINDS.get(eventType)
  if (kind === undefined) return null
  const approvalId = textAt(payload, 'approvalId')?.toLowerCase()
  if (approvalId === undefined || !isUuid(approvalId)) return null
  if (kind === 'input' && !Object.hasOwn(payload, 'input')) return null
  const status = kind === 'ran' ? ranStatus(eventType, payload) : null
  if (kind === 'ran' && status === null) return null
  return {
    approvalId,
    kind,
    toolName: textAt(payload, 'toolName'),
    inputHash: textAt(payload, 'inputHash')?.toLowerCase() ?? null,
    policyVersions: kind === 'input' ? versionsIn(payload['policyVersions']) : null,
    reason: kind === 'withdrawn' ? (WITHDRAWN_REASONS.find((one) => one === payload['reason']) ?? 'cancelled') : null,
    status,
  }
}

/** Null: the call never began. */
function ranStatus(eventType: string, { outcome, error }: Json): RanStatus | null {
  if (eventType === 'TOOL_START') return 'started'
  if (outcome === 'never_ran') return null
  const said = RAN_STATUSES.find((status) => status === outcome)
  return said ?? (error === undefined || error === null ? 'returned' : 'failed')
}

function versionsIn(value: unknown): Record<string, string> | null {
  if (!isObject(value)) return null
  const fits = (text: unknown): text is string =>
    typeof text === 'string' && hasAtMost(text, LIMITS.textChars) && isStorableText(text)
  const entries = Object.entries(value).filter((entry): entry is [string, string] => entry.every(fits))
  return Object.fromEntries(entries.slice(0, VERSIONS_KEPT))
}
