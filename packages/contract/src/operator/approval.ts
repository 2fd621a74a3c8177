import Type, { type Static } from 'typebox'
import { Approval, ApprovalStatus, DECISIONS } from '../approval.ts'
import { cursor, nextCursor, nullableText, pageLimit, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'

/** Who decided: a signed-in operator, or an operator token. */
export const Decider = Type.Object(
  {
    kind: Type.Enum(['operator', 'token']),
    id: Type.String(),
    name: Type.String(),
  },
  { $id: 'Decider' },
)

const nullableDecider = Type.Unsafe<Static<typeof Decider> | null>({
  anyOf: [Decider, { type: 'null' }],
  description: 'Who decided; null while nobody has',
})

/** An approval as operators see it: the public fields, the request, and who decided. */
export const OperatorApproval = Type.Object(
  {
    ...Approval.properties,
    clientId: Type.String({ description: 'Client instance that asked' }),
    clientRequestId: Type.String(),
    runId: nullableText('External run id'),
    sessionId: nullableText('External session id'),
    agentId: nullableText('External agent id'),
    policyId: nullableText('Policy that required approval'),
    toolName: Type.String(),
    inputHash: Type.String({ description: 'Hash of the tool input, in lower-case hex' }),
    reason: nullableText('Why approval is needed, by the client'),
    timeoutMs: Type.Integer(),
    createdAt: time('When it was asked for'),
    decidedBy: nullableDecider,
  },
  { $id: 'OperatorApproval', description: 'An approval request, as operators see it' },
)
export type OperatorApproval = Static<typeof OperatorApproval>

/** How often the same agent has asked lately: many requests at once wear people out, and some do it on purpose. */
export const AskedLately = Type.Object(
  {
    requests: Type.Integer({ minimum: 0, description: 'Requests of the agent in the window that ends now' }),
    capped: Type.Boolean({ description: 'Whether there were more than are counted' }),
    windowMs: Type.Integer(),
    burst: Type.Boolean({ description: 'Whether that is unusually many: decide with care' }),
  },
  { $id: 'AskedLately' },
)
export type AskedLately = Static<typeof AskedLately>

export const ApprovalCard = Type.Object(
  { ...OperatorApproval.properties, askedLately: AskedLately },
  {
    $id: 'ApprovalCard',
    description: 'An approval request, and how often its agent (or else its client) has asked lately',
  },
)
export type ApprovalCard = Static<typeof ApprovalCard>

/** The masked input in a POLICY_DECISION of the same run that names the approval, the tool and the input hash. */
export const InputPreview = Type.Object(
  {
    json: Type.String({
      description: `JSON text as the client recorded it, at most ${LIMITS.inputPreviewChars} characters`,
    }),
    isTruncated: Type.Boolean({ description: 'Whether `json` ends early: it is not valid JSON then' }),
    isShortened: Type.Boolean({
      description:
        'Whether the client says, by `tachoShortened` in the payload, that it cut what did not fit into an event',
    }),
    bytes: Type.Integer({ minimum: 0, description: 'Size of the whole recorded text in UTF-8' }),
    eventId: Type.String({ description: 'Client event id of the POLICY_DECISION' }),
    recordedAt: time('When that event was stored, by the server'),
  },
  {
    $id: 'InputPreview',
    description:
      "Tool input as the client recorded it, masked. It is the client's word: the service never sees the input that the hash is of",
  },
)
export type InputPreview = Static<typeof InputPreview>

export const ApprovalDetail = Type.Object(
  {
    ...ApprovalCard.properties,
    inputPreview: Type.Unsafe<InputPreview | null>({
      anyOf: [InputPreview, { type: 'null' }],
      description: 'Null when the client recorded no input for this approval, as in metadata-only mode',
    }),
  },
  { $id: 'ApprovalDetail', description: 'An approval request with the input that was recorded for it' },
)
export type ApprovalDetail = Static<typeof ApprovalDetail>

export const ApprovalPage = Type.Object({ items: Type.Array(ApprovalCard), nextCursor }, { $id: 'ApprovalPage' })
export type ApprovalPage = Static<typeof ApprovalPage>

const filterText = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.textChars, description }))

export const ApprovalsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  status: Type.Optional(ApprovalStatus),
  toolName: filterText('Protected tool'),
  inputHash: filterText('Hash of the tool input'),
  agentId: filterText('External agent id'),
  policyId: filterText('Policy that required approval'),
  runId: filterText('External run id'),
})

/** Requests that wait for the same tool with the same input: one decision can settle them all. */
export const ApprovalGroup = Type.Object(
  {
    toolName: Type.String(),
    inputHash: Type.String(),
    requests: Type.Integer({ minimum: 1 }),
    runs: Type.Integer({ minimum: 0, description: 'Runs that wait' }),
    agents: Type.Integer({ minimum: 1, description: 'Agents (or clients without one) that wait' }),
    policies: Type.Integer({ minimum: 0, description: 'Policies that required approval' }),
    oldestExpiresAt: time('The first of them expires then'),
    oldestCreatedAt: time('The first of them was asked for then'),
  },
  { $id: 'ApprovalGroup', description: 'Pending approval requests for one tool and input' },
)
export type ApprovalGroup = Static<typeof ApprovalGroup>

export const ApprovalGroups = Type.Object(
  {
    items: Type.Array(ApprovalGroup, { description: 'Oldest deadline first' }),
    more: Type.Boolean({ description: 'Whether there are groups or requests beyond those that were looked at' }),
  },
  { $id: 'ApprovalGroups' },
)
export type ApprovalGroups = Static<typeof ApprovalGroups>

export const OperatorApprovalParams = Type.Object({
  environmentId: uuid('Environment id'),
  approvalId: uuid('Approval id'),
})

const decision = {
  decision: Type.Enum([...DECISIONS]),
  reason: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      maxLength: LIMITS.decisionReasonChars,
      description: 'For the client and the record',
    }),
  ),
}

/** Unknown fields are refused: who decides is whoever is signed in, and nobody may think a name given here counts. */
export const NewDecision = Type.Object(decision, {
  $id: 'NewDecision',
  additionalProperties: false,
  examples: [{ decision: 'APPROVED', reason: 'The customer is entitled to it' }],
})
export type NewDecision = Static<typeof NewDecision>

/** Either `ids`, all of one tool and input, or `toolName` and `inputHash`. */
export const NewDecisions = Type.Object(
  {
    ...decision,
    ids: Type.Optional(Type.Array(uuid('Approval id'), { minItems: 1, maxItems: LIMITS.decisionsMax })),
    toolName: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.textChars })),
    inputHash: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.inputHashDigitsMax })),
  },
  {
    $id: 'NewDecisions',
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

export const DECISION_OUTCOMES = ['decided', 'refused', 'not_found'] as const

export const DecisionOutcome = Type.Object(
  {
    id: uuid('Approval id'),
    outcome: Type.Enum([...DECISION_OUTCOMES], {
      description: 'refused: it was decided or had expired before; `approval` is its present state',
    }),
    approval: Type.Unsafe<OperatorApproval | null>({ anyOf: [OperatorApproval, { type: 'null' }] }),
  },
  { $id: 'DecisionOutcome' },
)
export type DecisionOutcome = Static<typeof DecisionOutcome>

export const DecisionOutcomes = Type.Object(
  {
    items: Type.Array(DecisionOutcome),
    more: Type.Boolean({ description: 'Whether more requests of that tool and input are pending: ask again' }),
  },
  { $id: 'DecisionOutcomes' },
)
export type DecisionOutcomes = Static<typeof DecisionOutcomes>

/** Messages of the stream, by the name of their event. */
export const ApprovalSnapshot = Type.Object(
  {
    items: Type.Array(OperatorApproval, { description: 'Pending requests, oldest deadline first' }),
    more: Type.Boolean({ description: 'Whether more are pending: the list has them' }),
  },
  { $id: 'ApprovalSnapshot', description: '`snapshot`: what is pending when the stream opens' },
)
export type ApprovalSnapshot = Static<typeof ApprovalSnapshot>

export const ApprovalChanges = Type.Object(
  { items: Type.Array(Type.Object({ id: uuid('Approval id'), status: ApprovalStatus })) },
  {
    $id: 'ApprovalChanges',
    description: '`changed`: approvals that are new or have changed. A hint to look again, in no particular order',
  },
)
export type ApprovalChanges = Static<typeof ApprovalChanges>

export const StreamEnd = Type.Object(
  { reason: Type.Enum(['shutting_down', 'access_ended']) },
  {
    $id: 'StreamEnd',
    description: '`end`: the last message. Connect again, unless the token or session is no longer good',
  },
)
export type StreamEnd = Static<typeof StreamEnd>
