/** Reports what happened after an approval was requested, from the run's events and the payload conventions. */
import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { HINDSIGHTS, type Hindsight } from '../engine/words.ts'
import { cursor, filterSchemas, nextCursor, nullableText, pageLimit, time, uuid } from '../web/fields.ts'
import { HINDSIGHT_FILTERS } from './approval-filters.ts'
import { OperatorApproval } from './operator-approval.ts'

/** Verdicts on a recorded tool call and its approval. Every verdict except the first deserves attention. */
export const CALL_VERDICTS = {
  as_approved: 'The tool ran with the approved input',
  ran_again: 'The tool ran again on an approval that an earlier call had used',
  before_decision: 'The tool ran before a person decided',
  after_rejection: 'The tool ran although a person rejected it',
  after_expiry: 'The tool ran although the approval had expired',
  other_input: 'The tool ran with an input other than the approved one',
  other_tool: 'A tool other than the approved one ran',
  other_run: 'Another run requested the approval',
  unknown_approval: 'The call names an approval that does not exist in this environment',
  without_approval: 'A policy required approval, and the tool ran without one',
} as const satisfies Record<string, string>

export type CallVerdict = keyof typeof CALL_VERDICTS

export const CALL_OUTCOMES = ['output', 'error', 'unknown'] as const

export const JudgedCall = Type.Object(
  {
    eventId: Type.String({ description: 'Client event id of the TOOL_CALL' }),
    id: uuid('Internal event id'),
    label: Type.String(),
    timestamp: time("When it happened, by the client's clock"),
    receivedAt: time("When it was stored, by the server's clock"),
    toolName: nullableText('As recorded'),
    inputHash: nullableText('As recorded, in lower case'),
    verdict: Type.Enum(Object.keys(CALL_VERDICTS) as CallVerdict[]),
    message: Type.String({ description: 'The verdict as a sentence' }),
    approvalId: nullableText('The approval the call was compared with; null if there is none'),
    linkedBy: Type.Enum(['approvalId', 'inputHash', 'toolName', 'none'], {
      description: 'How the approval was found: by the id in the call, by tool and hash, or by the tool only',
    }),
    hashChecked: Type.Boolean({
      description: 'Whether the call recorded its input hash for comparison',
    }),
    outcome: Type.Enum([...CALL_OUTCOMES], {
      description: 'unknown: the call recorded neither output nor error, as in metadata-only mode',
    }),
  },
  { $id: 'JudgedCall', description: 'A recorded tool call related to an approval' },
)
export type JudgedCall = Static<typeof JudgedCall>

const looked = {
  run: nullableText('Internal run id; null when the request named no run or the run has no events'),
  truncated: Type.Boolean({ description: 'Whether the run has more events than were examined' }),
}

export const ApprovalAftermath = Type.Object(
  { approval: OperatorApproval, calls: Type.Array(JudgedCall), ...looked },
  {
    $id: 'ApprovalAftermath',
    description: 'What happened after one approval was requested, in timeline order',
  },
)
export type ApprovalAftermath = Static<typeof ApprovalAftermath>

export const RunApprovals = Type.Object(
  {
    approvals: Type.Array(OperatorApproval, { description: 'Oldest first' }),
    calls: Type.Array(JudgedCall),
    ...looked,
  },
  { $id: 'RunApprovals', description: 'The approvals of a run and the recorded tool calls related to them' },
)
export type RunApprovals = Static<typeof RunApprovals>

export const HindsightQuery = Type.Object({
  ...filterSchemas(HINDSIGHT_FILTERS),
  limit: pageLimit(LIMITS.hindsightPage, LIMITS.hindsightPage),
  cursor,
})

const ApprovalInHindsight = Type.Object(
  {
    approval: OperatorApproval,
    hindsight: Type.Enum(Object.keys(HINDSIGHTS) as Hindsight[]),
    message: Type.String({ description: 'The same as a sentence' }),
    call: Type.Unsafe<JudgedCall | null>({
      anyOf: [JudgedCall, { type: 'null' }],
      description: 'The tool call that shows it; null if there is none',
    }),
  },
  { $id: 'ApprovalInHindsight', description: 'A closed request, and what became of it' },
)

export type ApprovalInHindsight = Static<typeof ApprovalInHindsight>

export const HindsightPage = Type.Object(
  { items: Type.Array(ApprovalInHindsight), nextCursor },
  { $id: 'HindsightPage' },
)
