import Type, { type Static } from 'typebox'
import { Approval, ApprovalStatus, ASKED } from './approval.ts'
import { cursor, filterSchemas, nextCursor, nullableText, nullableTime, pageLimit, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { APPROVAL_FILTERS } from './approval-filters.ts'
import { GRANT_SCOPES, RAN_STATUSES, WAITING_STATES, WITHDRAWN_REASONS, type WithdrawnReason } from '../engine/words.ts'
import { CallGrounds, CallSentence } from './call-sentence.ts'
import { PolicyVersion } from '../policies/policy.ts'

/** The decider: a signed-in operator or an operator token. */
export const Decider = Type.Object(
  {
    kind: Type.Enum(['operator', 'token']),
    id: Type.String(),
    name: Type.String(),
    via: Type.Unsafe<'slack' | 'grant' | null>({
      enum: ['slack', 'grant', null],
      description:
        'Where the person decided: slack, by a button of a message; grant: before, by a standing approval; null: in the operator API',
    }),
  },
  { $id: 'Decider' },
)

const nullableDecider = Type.Unsafe<Static<typeof Decider> | null>({
  anyOf: [Decider, { type: 'null' }],
  description: 'Who decided; null while undecided',
})

export const FirstApproval = Type.Object(
  { by: Decider, at: time('When they approved it'), reason: nullableText('The reason they gave') },
  { $id: 'FirstApproval', description: 'The status stays PENDING until another person approves too' },
)
export type FirstApproval = Static<typeof FirstApproval>

/** Whether the caller of the held call still waits for the answer. */
export const Waiting = Type.Object(
  {
    state: Type.Enum([...WAITING_STATES], {
      description: `waiting: the client asked for the answer within the last ${LIMITS.approvalWaitingMs / 1_000} seconds; stopped: it did before, and no longer does, or no longer did when a person decided; withdrawn: it said that the call is gone, so nothing runs under this approval; unknown: it has not begun to wait, as a call that lets a person decide later, or it need not wait any more`,
    }),
    lastSeenAt: nullableTime('When the client last asked for the answer, or withdrew the request; null: never'),
    reason: Type.Unsafe<WithdrawnReason | null>({
      enum: [...WITHDRAWN_REASONS, null],
      description: 'Why it was withdrawn; null unless it was',
    }),
  },
  { $id: 'Waiting' },
)
export type Waiting = Static<typeof Waiting>

/** An approval for operators: the public fields, the request and who decided. */
export const OperatorApproval = Type.Object(
  {
    ...Approval.properties,
    ...ASKED,
    agentName: nullableText(
      'Its name, as operators see it, or that of the agent of its run if the request names none; null: no event names it',
    ),
    createdAt: time('When approval was requested'),
    importedAt: nullableTime(
      'When an import brought it, with its decision; null: a client of this installation asked. Clients never get an imported one',
    ),
    decidedBy: nullableDecider,
    waiting: Waiting,
    approvers: Type.Integer({ minimum: 1, maximum: 2, description: 'How many different people must approve it' }),
    grantId: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'The standing approval that approved it; null: a person decided, or nobody yet',
    }),
    firstApproval: Type.Unsafe<FirstApproval | null>({
      anyOf: [FirstApproval, { type: 'null' }],
      description: 'The first of two people who approve; null: nobody did, or one is enough',
    }),
  },
  { $id: 'OperatorApproval', description: 'An approval request, as operators see it' },
)
export type OperatorApproval = Static<typeof OperatorApproval>

/** How often the agent has asked recently. Many requests tire reviewers, and an attacker can exploit that. */
export const AskedLately = Type.Object(
  {
    requests: Type.Integer({ minimum: 0, description: 'Requests of the agent in the window that ends now' }),
    capped: Type.Boolean({ description: 'Whether the count stopped at its limit' }),
    windowMs: Type.Integer(),
    burst: Type.Boolean({ description: 'Whether the number is unusually high: decide with care' }),
  },
  { $id: 'AskedLately' },
)
export type AskedLately = Static<typeof AskedLately>

/** Whether the recorded input is the one that the approval's hash covers. */
export const InputCheck = Type.Object(
  {
    result: Type.Enum(['matches', 'cannot_be_checked', 'does_not_match'], {
      description:
        'does_not_match: what is shown is not what the agent asked for. Approving it needs `confirmMismatch`',
    }),
    reason: Type.Unsafe<'masked' | 'shortened' | 'other_scheme' | 'not_recorded' | null>({
      enum: ['masked', 'shortened', 'other_scheme', 'not_recorded', null],
      description: 'Why it cannot be checked; null otherwise',
    }),
    sealed: Type.Integer({
      minimum: 0,
      description: 'Masked members that are covered by the hash although nobody can read them here',
    }),
    sealedAt: Type.Optional(
      Type.Array(Type.String(), {
        description: `Their JSON Pointers, as the client recorded them: at most ${LIMITS.sealedShown}, each cut after ${LIMITS.sealedPointerChars} characters. Absent: there is none`,
      }),
    ),
  },
  { $id: 'InputCheck' },
)
export type InputCheck = Static<typeof InputCheck>

/** An earlier request for the same call: the same call id, tool, input and run. */
export const RanBefore = Type.Object(
  {
    approvalId: uuid('The approval under which it ran'),
    at: time('When the service stored that it ran'),
    status: Type.Enum([...RAN_STATUSES], {
      description: 'How the call ended; started: no end is recorded',
    }),
  },
  { $id: 'RanBefore' },
)
export type RanBefore = Static<typeof RanBefore>

export const ApprovalCard = Type.Object(
  {
    ...OperatorApproval.properties,
    sentence: CallSentence,
    askedLately: AskedLately,
    inputInShort: nullableText(
      `The beginning of the recorded input in one line, as the client masked it: the command, the file of an edit, or the input as JSON, about ${LIMITS.inputInShortChars} characters. Null: none is recorded, or the list would have to read too much. The request itself has it whole`,
    ),
    inputCheck: Type.Unsafe<InputCheck | null>({
      anyOf: [InputCheck, { type: 'null' }],
      description: 'Of the recorded input; null: the list would have to read too much',
    }),
    ranBefore: Type.Unsafe<RanBefore | null>({
      anyOf: [RanBefore, { type: 'null' }],
      description: 'This very call ran before, under that approval; null: no such call is recorded',
    }),
  },
  {
    $id: 'ApprovalCard',
    description: 'An approval request, and how often its agent (or its client) has asked recently',
  },
)
export type ApprovalCard = Static<typeof ApprovalCard>

/**
 * The masked input in a POLICY_DECISION of the client and API key that made the request, in the same run, with the same
 * tool and hash.
 */
export const InputPreview = Type.Object(
  {
    json: Type.String({
      description: `JSON text as recorded by the client, at most ${LIMITS.inputPreviewChars} characters`,
    }),
    isTruncated: Type.Boolean({ description: 'Whether `json` is cut off, so it is not valid JSON' }),
    isShortened: Type.Boolean({
      description:
        'Whether the client shortened the input to fit into an event; it sets `tachoShortened` in the payload',
    }),
    bytes: Type.Integer({ minimum: 0, description: 'Size of the complete recorded text in UTF-8 bytes' }),
    eventId: Type.String({ description: 'Client event id of the POLICY_DECISION' }),
    recordedAt: time("When that event was stored, by the server's clock"),
    check: InputCheck,
  },
  {
    $id: 'InputPreview',
    description: 'Tool input as recorded by the client, masked. `check` says whether it has the hash that is approved',
  },
)
export type InputPreview = Static<typeof InputPreview>

/**
 * The people who can decide the approval: with the role approver or higher in its workspace or in the whole
 * installation.
 */
export const Deciders = Type.Object(
  {
    people: Type.Array(Type.Object({ id: Type.String(), name: Type.String({ description: 'Their e-mail address' }) }), {
      description: `At most ${LIMITS.decidersMax}`,
    }),
    more: Type.Boolean({ description: 'Whether more people can' }),
    tokens: Type.Integer({ minimum: 0, description: 'Operator tokens that can decide it' }),
  },
  { $id: 'Deciders' },
)
export type Deciders = Static<typeof Deciders>

/** The version of the policy that asked. */
export const AskingPolicy = Type.Object(
  {
    version: PolicyVersion,
    basis: Type.Enum(['client', 'in_force'], {
      description:
        'client: the client named this version; in_force: it named none, and this one was deployed in the environment then',
    }),
    newer: Type.Unsafe<'in_force' | 'drafted' | null>({
      enum: ['in_force', 'drafted', null],
      description: 'Whether a newer version is deployed in the environment now, or only written; null: there is none',
    }),
    inForce: nullableText('The version that is deployed in the environment now; null: none is'),
    newest: Type.String({ description: 'The newest version' }),
  },
  { $id: 'AskingPolicy' },
)
export type AskingPolicy = Static<typeof AskingPolicy>

export const MayGrant = Type.Object(
  {
    scopes: Type.Array(Type.Enum([...GRANT_SCOPES])),
    why: nullableText('Why nothing more than this call can be allowed; null: something can'),
  },
  { $id: 'MayGrant' },
)
export type MayGrant = Static<typeof MayGrant>

export const ApprovalDetail = Type.Object(
  {
    ...ApprovalCard.properties,
    deciders: Type.Unsafe<Deciders | null>({
      anyOf: [Deciders, { type: 'null' }],
      description: 'Who can decide it; null unless it is PENDING',
    }),
    inputPreview: Type.Unsafe<InputPreview | null>({
      anyOf: [InputPreview, { type: 'null' }],
      description: 'Null when the client recorded no input for this approval, as in metadata-only mode',
    }),
    grounds: Type.Unsafe<CallGrounds | null>({
      anyOf: [CallGrounds, { type: 'null' }],
      description: 'What the user said, and where each value of the input was; null: no whole input is recorded',
    }),
    policyVersion: nullableText('Version of the policy that required approval, as the client named it'),
    mayGrant: Type.Unsafe<MayGrant | null>({
      anyOf: [MayGrant, { type: 'null' }],
      description: 'What a person who approves it may also allow; null unless it is PENDING',
    }),
    askingPolicy: Type.Unsafe<AskingPolicy | null>({
      anyOf: [AskingPolicy, { type: 'null' }],
      description: 'The policy that required approval, in the version that asked; null: it is not known',
    }),
  },
  { $id: 'ApprovalDetail', description: 'An approval request with its recorded input' },
)
export type ApprovalDetail = Static<typeof ApprovalDetail>

export const ApprovalPage = Type.Object({ items: Type.Array(ApprovalCard), nextCursor }, { $id: 'ApprovalPage' })
export type ApprovalPage = Static<typeof ApprovalPage>

export const ApprovalsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  ...filterSchemas(APPROVAL_FILTERS),
  status: Type.Optional(ApprovalStatus),
})

/** Requests waiting for the same tool with the same input. One decision can cover all of them. */
export const ApprovalGroup = Type.Object(
  {
    toolName: Type.String(),
    inputHash: Type.String(),
    requests: Type.Integer({ minimum: 1 }),
    runs: Type.Integer({ minimum: 0, description: 'Runs waiting' }),
    agents: Type.Integer({ minimum: 1, description: 'Agents waiting, or clients that name no agent' }),
    policies: Type.Integer({ minimum: 0, description: 'Policies that required approval' }),
    oldestExpiresAt: time('Earliest expiry'),
    oldestCreatedAt: time('Earliest request'),
  },
  { $id: 'ApprovalGroup', description: 'Pending approval requests for one tool and input' },
)
export type ApprovalGroup = Static<typeof ApprovalGroup>

export const ApprovalGroups = Type.Object(
  {
    items: Type.Array(ApprovalGroup, { description: 'Oldest deadline first' }),
    more: Type.Boolean({ description: 'Whether more groups or requests exist than were examined' }),
  },
  { $id: 'ApprovalGroups' },
)
export type ApprovalGroups = Static<typeof ApprovalGroups>

export const OperatorApprovalParams = Type.Object({
  environmentId: uuid('Environment id'),
  approvalId: uuid('Approval id'),
})

/** Messages of the stream, by event name. */
export const ApprovalSnapshot = Type.Object(
  {
    items: Type.Array(OperatorApproval, {
      description: 'Pending requests that are not withdrawn, oldest deadline first',
    }),
    more: Type.Boolean({ description: 'Whether more are pending; read them from the list' }),
  },
  {
    $id: 'ApprovalSnapshot',
    description: '`snapshot`: the pending requests when the stream opens, and after approvals were erased',
  },
)
export type ApprovalSnapshot = Static<typeof ApprovalSnapshot>

export const ApprovalChanges = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        id: uuid('Approval id'),
        status: ApprovalStatus,
        isWithdrawn: Type.Optional(Type.Boolean({ description: 'true: its client withdrew it' })),
      }),
    ),
  },
  {
    $id: 'ApprovalChanges',
    description: '`changed`: new or changed approvals, in no particular order. Read them again',
  },
)
export type ApprovalChanges = Static<typeof ApprovalChanges>

export const StreamEnd = Type.Object(
  { reason: Type.Enum(['shutting_down', 'access_ended']) },
  {
    $id: 'StreamEnd',
    description: '`end`: the last message. Connect again, unless the token or session is no longer valid',
  },
)
export type StreamEnd = Static<typeof StreamEnd>
