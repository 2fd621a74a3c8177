/** Messages of webhooks with the format `standard`. They never contain payloads or tool inputs. */
import Type, { type Static, type TSchema } from 'typebox'
import { ApprovalStatus } from '../approvals/approval.ts'
import { nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import { RunStatus } from '../runs/run.ts'
import { RunFailure } from '../runs/operator-run.ts'
import { Completeness } from '../record/completeness.ts'
import { IssueState } from '../issues/issue.ts'
import { RanBefore } from '../approvals/operator-approval.ts'
import { ALERT_KINDS, WITHDRAWN_REASONS, type WEBHOOK_EVENTS } from '../engine/words.ts'

const at = time('When it happened')
const url = nullableText('Its page in the console, for which a person signs in; null: there is none')

const approval = Type.Object(
  {
    environmentId: uuid('Environment id'),
    approvalId: uuid('Approval id'),
    status: ApprovalStatus,
    toolName: Type.String(),
    inputHash: Type.String(),
    agentId: nullableText('External agent id'),
    agentName: nullableText('Name of the agent, as operators see it; null: no event names it'),
    runId: nullableText('External run id'),
    sessionId: nullableText('External session id'),
    policyId: nullableText('Policy that required approval'),
    reason: nullableText('Why approval is needed, according to the client'),
    expiresAt: time('When the request expires undecided'),
    decidedAt: nullableTime('When a person decided'),
    decisionReason: nullableText('The reason the person gave'),
    deciderName: nullableText('Who decided'),
    decidedVia: nullableText('Where: slack, by a button of a message; null: in the operator API, or undecided'),
    approvers: Type.Optional(Type.Integer({ minimum: 1, maximum: 2, description: 'How many people must approve it' })),
    firstApproval: Type.Optional(
      Type.Unsafe<{ name: string; at: string; reason: string | null } | null>({
        type: ['object', 'null'],
        properties: { name: Type.String(), at: time('When they approved it'), reason: nullableText('Why') },
        required: ['name', 'at', 'reason'],
        description: 'The first of two people approved; null: nobody did, or one is enough',
      }),
    ),
    withdrawnAt: Type.Optional(time('When the client withdrew the request. Absent: it did not')),
    withdrawnReason: Type.Optional(Type.Enum([...WITHDRAWN_REASONS])),
    ranBefore: Type.Optional(RanBefore),
    url,
  },
  { $id: 'ApprovalNews', description: 'The state of an approval when the message was created' },
)

const issue = Type.Object(
  {
    environmentId: uuid('Environment id'),
    issueId: uuid('Issue id'),
    title: Type.String({ description: 'What happened, in a line' }),
    detectionType: Type.String(),
    state: IssueState,
    occurrences: Type.Integer({ minimum: 1 }),
    firstSeenAt: time('Earliest detection'),
    lastSeenAt: time('Latest detection'),
    url,
  },
  { $id: 'IssueNews', description: 'The state of an issue when the message was created' },
)

export const ApprovalMessage = Type.Object(
  {
    type: Type.Enum(['approval.requested', 'approval.decided', 'approval.expired', 'approval.withdrawn']),
    timestamp: at,
    data: approval,
  },
  { $id: 'ApprovalMessage', description: 'A message about an approval' },
)
export type ApprovalMessage = Static<typeof ApprovalMessage>

export const IssueMessage = Type.Object(
  { type: Type.Enum(['issue.opened', 'issue.regressed']), timestamp: at, data: issue },
  { $id: 'IssueMessage', description: 'A message about an issue' },
)
export type IssueMessage = Static<typeof IssueMessage>

const alert = Type.Object(
  {
    environmentId: uuid('Environment id'),
    alertId: uuid('Alert id'),
    title: Type.String({ description: 'Its name' }),
    kind: Type.Enum([...ALERT_KINDS]),
    threshold: Type.Number(),
    against: Type.Optional(
      Type.Unsafe<'last_week' | null>({
        type: ['string', 'null'],
        enum: ['last_week', null],
        description: 'last_week: value and threshold are percent of the same hours a week before',
      }),
    ),
    agentId: nullableText('Internal id of the agent that it is about; null: all'),
    agentName: nullableText('Its name, as operators see it; null: all agents, or it has no run any more'),
    value: Type.Unsafe<number | null>({ type: ['number', 'null'], description: 'What was measured' }),
    unpricedCalls: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'For money: calls without a cost or a price. Above 0, the value is at least what it says',
      }),
    ),
    comparison: Type.Optional(
      Type.String({
        description:
          'For error_rate against last_week, and for share_failures: which of both fails more often, with intervals',
      }),
    ),
    percent: Type.Integer({ minimum: 0, description: 'For a budget: 50, 80 or 100' }),
    isTest: Type.Optional(Type.Boolean({ description: 'An operator sent it to test the alert' })),
    url,
  },
  { $id: 'AlertNews', description: 'An alert or a budget when the message was created' },
)

export const AlertMessage = Type.Object(
  { type: Type.Enum(['alert.firing', 'alert.resolved', 'budget.reached']), timestamp: at, data: alert },
  { $id: 'AlertMessage', description: 'A message about an alert or a budget' },
)
export type AlertMessage = Static<typeof AlertMessage>

const run = {
  environmentId: uuid('Environment id'),
  id: uuid('Internal id of the run'),
  runId: Type.String({ description: 'External run id' }),
  sessionId: nullableText('External session id'),
  agentId: nullableText('External agent id'),
  agentName: Type.String({ description: 'Name of the agent, as operators see it' }),
  runStatus: RunStatus,
  url,
}

const { state: _state, unnumbered: _unnumbered, recorders: _recorders, ...missing } = Completeness.properties

const incomplete = Type.Object(
  {
    ...run,
    title: Type.String({ description: 'What is missing, in a line' }),
    ...missing,
  },
  { $id: 'IncompleteRun', description: 'What of a run did not arrive when the message was created' },
)

export const IncompleteRunMessage = Type.Object(
  { type: Type.Enum(['run.incomplete']), timestamp: at, data: incomplete },
  { $id: 'IncompleteRunMessage', description: 'A message about a run of which events are missing' },
)
export type IncompleteRunMessage = Static<typeof IncompleteRunMessage>

const failed = Type.Object(
  {
    ...run,
    title: Type.String({
      description: 'Why it failed, in a line, such as `TimeoutError in get_order: no answer after 3000 ms`',
    }),
    failure: Type.Union([RunFailure, Type.Null()], {
      description:
        'The error of its outcome, or else its latest error. Null: none is known, or the stalled rule closed it',
    }),
  },
  { $id: 'FailedRun', description: 'A run that failed, when the message was created' },
)

export const FailedRunMessage = Type.Object(
  { type: Type.Enum(['run.failed']), timestamp: at, data: failed },
  { $id: 'FailedRunMessage', description: 'A message about a run that failed' },
)
export type FailedRunMessage = Static<typeof FailedRunMessage>

export const TestMessage = Type.Object(
  {
    type: Type.Enum(['webhook.test']),
    timestamp: at,
    data: Type.Object({ environmentId: uuid('Environment id'), reason: Type.String(), url }),
  },
  { $id: 'TestMessage', description: 'A message an operator sent to test the webhook' },
)
export type TestMessage = Static<typeof TestMessage>

/** Every message by type: when it is sent and what it contains. */
export const WEBHOOK_MESSAGES = {
  'approval.requested': {
    summary: 'A client requests approval, or the first of two people approved',
    body: ApprovalMessage,
  },
  'approval.decided': { summary: 'An operator approved or rejected', body: ApprovalMessage },
  'approval.expired': { summary: 'An approval expired undecided', body: ApprovalMessage },
  'approval.withdrawn': { summary: 'The client withdrew a request: nothing runs under it', body: ApprovalMessage },
  'issue.opened': { summary: 'Records opened a new issue', body: IssueMessage },
  'issue.regressed': { summary: 'A resolved issue came back', body: IssueMessage },
  'alert.firing': { summary: 'The condition of an alert held long enough', body: AlertMessage },
  'alert.resolved': { summary: 'The condition of a firing alert is over', body: AlertMessage },
  'budget.reached': { summary: '50, 80 or 100 percent of a budget are used', body: AlertMessage },
  'run.failed': { summary: 'A run ended as failed, or the stalled rule closed it', body: FailedRunMessage },
  'run.incomplete': {
    summary: 'Events of a run did not arrive, for a minute; once for each run',
    body: IncompleteRunMessage,
  },
  'webhook.test': { summary: 'An operator tests the webhook', body: TestMessage },
} as const satisfies Record<(typeof WEBHOOK_EVENTS)[number] | 'webhook.test', { summary: string; body: TSchema }>

/** Headers of every message (Standard Webhooks). */
export const WebhookHeaders = Type.Object({
  'webhook-id': uuid('Delivery id; the same in every attempt'),
  'webhook-timestamp': Type.String({ pattern: '^[0-9]+$', description: 'When this attempt was sent, in Unix seconds' }),
  'webhook-signature': Type.String({
    description:
      '`v1,` and the base64 HMAC-SHA-256 of id, timestamp and body; several, separated by spaces, after a rotation',
  }),
})
