/** What happened after an approval was asked for: read from what the run recorded, by the payload conventions. */
import Type, { type Static } from 'typebox'
import { nullableText, time, uuid } from '../fields.ts'
import { OperatorApproval } from './approval.ts'

/** What a recorded tool call means for the approval it belongs to. All but the first deserve a look. */
export const CALL_VERDICTS = {
  as_approved: 'The tool ran with the approved input',
  ran_again: 'The tool ran once more on an approval that an earlier call had used',
  before_decision: 'The tool ran before anyone had decided',
  after_rejection: 'The tool ran although it was rejected',
  after_expiry: 'The tool ran although nobody had decided in time',
  other_input: 'The tool ran with another input than approval was asked for',
  other_tool: 'Another tool ran than approval was asked for',
  other_run: 'The approval was asked for by another run',
  unknown_approval: 'The call names an approval that this environment does not have',
  without_approval: 'A policy required approval, and the tool ran without one',
} as const satisfies Record<string, string>

export type CallVerdict = keyof typeof CALL_VERDICTS

export const CALL_OUTCOMES = ['output', 'error', 'unknown'] as const

export const JudgedCall = Type.Object(
  {
    eventId: Type.String({ description: 'Client event id of the TOOL_CALL' }),
    id: uuid('Internal event id'),
    label: Type.String(),
    timestamp: time('When it happened, by the client'),
    receivedAt: time('When it was stored, by the server'),
    toolName: nullableText('As recorded'),
    inputHash: nullableText('As recorded, in lower case'),
    verdict: Type.Enum(Object.keys(CALL_VERDICTS) as CallVerdict[]),
    message: Type.String({ description: 'The verdict in a sentence' }),
    approvalId: nullableText('The approval it is judged by; null where there is none'),
    linkedBy: Type.Enum(['approvalId', 'inputHash', 'toolName', 'none'], {
      description: 'How it was found to belong: by the id it named, by tool and hash, or by the tool alone',
    }),
    hashChecked: Type.Boolean({
      description: 'Whether the call recorded its input hash, so that it could be compared',
    }),
    outcome: Type.Enum([...CALL_OUTCOMES], {
      description: 'unknown: neither output nor error was recorded, as in metadata-only mode',
    }),
  },
  { $id: 'JudgedCall', description: 'A recorded tool call that has to do with an approval' },
)
export type JudgedCall = Static<typeof JudgedCall>

const looked = {
  run: nullableText('Internal run id; null when no run was named or nothing of it is recorded'),
  truncated: Type.Boolean({ description: 'Whether the run has more than was looked at' }),
}

export const ApprovalAftermath = Type.Object(
  { approval: OperatorApproval, calls: Type.Array(JudgedCall), ...looked },
  {
    $id: 'ApprovalAftermath',
    description: 'What happened after one approval was asked for, in the order of the timeline',
  },
)
export type ApprovalAftermath = Static<typeof ApprovalAftermath>

export const RunApprovals = Type.Object(
  {
    approvals: Type.Array(OperatorApproval, { description: 'The oldest first' }),
    calls: Type.Array(JudgedCall),
    ...looked,
  },
  { $id: 'RunApprovals', description: 'The approvals of a run, and the recorded tool calls that have to do with them' },
)
export type RunApprovals = Static<typeof RunApprovals>
