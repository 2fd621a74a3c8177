import Type, { type Static } from 'typebox'
import { DECISIONS } from './approval.ts'
import { uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { NewGrant } from './grant.ts'
import { OperatorApproval } from './operator-approval.ts'

const decision = {
  decision: Type.Enum([...DECISIONS]),
  reason: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      maxLength: LIMITS.decisionReasonChars,
      description: 'Reason for the client and the audit log',
    }),
  ),
}

const confirmMismatch = Type.Optional(
  Type.Boolean({ description: 'Approve although the recorded input does not match the hash that is approved' }),
)

const eventIdSeen = {
  type: ['string', 'null'],
  maxLength: LIMITS.eventIdChars,
  description:
    'The `inputPreview.eventId` of the input that was shown; null: none was. Approving is refused with 409 if the service shows another one by now. Absent: it is not compared',
}

/** Rejects unknown fields: the signed-in person decides, so a name in the body must not seem to count. */
export const NewDecision = Type.Object(
  {
    ...decision,
    confirmMismatch,
    seenInput: Type.Optional(Type.Unsafe<string | null>(eventIdSeen)),
    grant: Type.Optional(NewGrant),
  },
  {
    $id: 'NewDecision',
    additionalProperties: false,
    examples: [{ decision: 'APPROVED', reason: 'The customer is entitled to it' }],
  },
)
export type NewDecision = Static<typeof NewDecision>

export const NewDecisions = Type.Object(
  {
    ...decision,
    confirmMismatch,
    seenInputs: Type.Optional(
      Type.Array(Type.Object({ id: uuid('Approval id'), eventId: Type.Unsafe<string | null>(eventIdSeen) }), {
        maxItems: LIMITS.decisionsMax,
      }),
    ),
    ids: Type.Optional(Type.Array(uuid('Approval id'), { minItems: 1, maxItems: LIMITS.decisionsMax })),
    toolName: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.textChars })),
    inputHash: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.inputHashDigitsMax })),
  },
  {
    $id: 'NewDecisions',
    description: 'Either `ids` of one tool and input, or `toolName` and `inputHash`',
    additionalProperties: false,
    examples: [
      {
        decision: 'REJECTED',
        reason: 'Not without a ticket',
        toolName: 'refund',
        inputHash: '6b86b273ff34fce19d6b804eff5a3f57',
      },
    ],
  },
)
export type NewDecisions = Static<typeof NewDecisions>

export const DECISION_OUTCOMES = [
  'decided',
  'first',
  'refused',
  'mismatch',
  'changed',
  'same_person',
  'runs_agent',
  'no_person',
  'not_found',
] as const

export const DecisionOutcome = Type.Object(
  {
    id: uuid('Approval id'),
    outcome: Type.Enum([...DECISION_OUTCOMES], {
      description:
        'first: approved, and a second person must approve it too; refused: it was already decided or expired; same_person, runs_agent, no_person: it needs two people, and this person approved it first, runs the agent, or is not known, as no person made the token; mismatch: the recorded input does not match, and the request has no `confirmMismatch`; changed: another input is recorded than the one that was shown: look again; `approval` is its current state',
    }),
    approval: Type.Unsafe<OperatorApproval | null>({ anyOf: [OperatorApproval, { type: 'null' }] }),
  },
  { $id: 'DecisionOutcome' },
)
export type DecisionOutcome = Static<typeof DecisionOutcome>

export const DecisionOutcomes = Type.Object(
  {
    items: Type.Array(DecisionOutcome),
    more: Type.Boolean({
      description:
        'Whether more requests of that tool and input are pending: send the request again. False if all of these stay pending',
    }),
  },
  { $id: 'DecisionOutcomes' },
)
export type DecisionOutcomes = Static<typeof DecisionOutcomes>
