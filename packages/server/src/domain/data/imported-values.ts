/**
 * Schemas of imported values, the same as in the APIs. A text without a schema has the limit of other texts; a number
 * is a time or a count.
 */
import { ApprovalHeaders, ApprovalStatus, CLIENT_ID_HEADER, NewApproval } from '@tacho/contract/approvals/approval.ts'
import { EventInput } from '@tacho/contract/record/event.ts'
import { anyObject, text, uuid } from '@tacho/contract/web/fields.ts'
import { IssueRecordInput, RecordOrigin, RecordStatus } from '@tacho/contract/issues/issue-record.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { AgentName } from '@tacho/contract/runs/agent.ts'
import { Decider } from '@tacho/contract/approvals/operator-approval.ts'
import { NewDecision } from '@tacho/contract/approvals/approval-decision.ts'
import { DeploymentChange, NewDeployment } from '@tacho/contract/policies/deployment.ts'
import { Actor, Assignment, Facts, IssueActivity, IssueState, NewComment, Split } from '@tacho/contract/issues/issue.ts'
import { NewPolicy } from '@tacho/contract/policies/policy.ts'
import { NewPrompt } from '@tacho/contract/policies/prompt.ts'
import { NewRunView } from '@tacho/contract/runs/run-view.ts'
import { SCORE_AUTHORS } from '@tacho/contract/runs/score.ts'
import { scoreName } from '@tacho/contract/record/payload.ts'
import { RunStatus } from '@tacho/contract/runs/run.ts'
import { RuntimeConfig, RuntimePrompt, SharePercent } from '@tacho/contract/policies/runtime-config.ts'
import { SCORE_KINDS } from '@tacho/contract/engine/words.ts'
import Type, { type TSchema } from 'typebox'
import type { ExportedTable } from '../../storage/engine/tables.ts'
import { schemaFaults, validatorOf } from '../web/schema-faults.ts'
import { isStorableText, UNSTORABLE } from '../web/text.ts'

const id = uuid('')
/** The APIs accept nine digits. Counting continues from the imported number, so an import must leave room. */
export const MOST_IMPORTED_VERSIONS = 100_000_000
const version = Type.Integer({ minimum: 1, maximum: MOST_IMPORTED_VERSIONS })
const OTHER_TEXT = text(LIMITS.textChars, '')
const SUM = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
export const MOST_IMPORTED_COUNT = 2 ** 52
const COUNT = Type.Integer({ minimum: 0, maximum: MOST_IMPORTED_COUNT })
const TIME = Type.Integer({ minimum: 0, maximum: LIMITS.detectedAtMaxMs })
const IS_TIME = /(At|Time|Seen|Until|^at|^timestamp)$/

const { kind, id: itemId } = NewDeployment.properties.items.items.properties
const deployed = { kind, itemId, publication: version }
const fingerprint = Split.properties.fingerprints.items
const { revision } = RuntimeConfig.properties
const { note } = NewPrompt.properties

const SCHEMAS: Readonly<Record<ExportedTable | 'run' | 'event', Readonly<Record<string, TSchema>>>> = {
  prompt: { id, name: NewPrompt.properties.name, newest: version },
  promptVersion: {
    id,
    promptId: id,
    number: version,
    note,
    content: NewPrompt.properties.content,
    contentHash: RuntimePrompt.properties.contentHash,
    contentBytes: Type.Integer({ minimum: 1, maximum: LIMITS.promptContentBytes }),
  },
  policy: { id: NewPolicy.properties.policyId, newest: version },
  policyVersion: { ...NewPolicy.properties, number: version },
  deployment: { ...deployed, version },
  promptShare: {
    promptId: id,
    version,
    percent: SharePercent,
    salt: Type.String({ pattern: '^[0-9a-f]{16}$' }),
  },
  deploymentChange: {
    ...deployed,
    shareVersion: version,
    sharePercent: Type.Integer({ minimum: 0, maximum: 99 }),
    action: DeploymentChange.properties.action,
    fromVersion: version,
    toVersion: version,
    restores: version,
    note,
    sourceEnvironmentId: id,
    revision,
  },
  runView: { id, ...NewRunView.properties },
  agent: {
    id,
    externalId: EventInput.properties.agentId,
    name: EventInput.properties.agentName,
    displayName: AgentName.properties.name,
  },
  model: { model: Type.String({ minLength: 1, maxLength: LIMITS.modelChars }) },
  approval: {
    ...NewApproval.properties,
    id,
    clientId: ApprovalHeaders.properties[CLIENT_ID_HEADER],
    status: ApprovalStatus,
    // Stored as a number; a request has a boolean.
    recordsInput: Type.Integer({ minimum: 0, maximum: 1 }),
    decisionReason: NewDecision.properties.reason,
    deciderKind: Decider.properties.kind,
    decidedVia: Decider.properties.via,
    approvers: Type.Integer({ minimum: 1, maximum: 2 }),
    firstApproval: Type.Object({
      kind: Decider.properties.kind,
      id: OTHER_TEXT,
      name: OTHER_TEXT,
      via: Type.Union([Type.Literal('slack'), Type.Null()]),
      person: OTHER_TEXT,
      at: TIME,
      reason: Type.Union([text(LIMITS.decisionReasonChars, ''), Type.Null()]),
      inputEventId: Type.Union([OTHER_TEXT, Type.Null()]),
    }),
    policyVersions: Type.Record(OTHER_TEXT, OTHER_TEXT, { maxProperties: LIMITS.deployedPolicies }),
    grantId: id,
  },
  issueRecord: {
    ...IssueRecordInput.properties,
    id,
    origin: RecordOrigin,
    sameAs: id,
    status: RecordStatus,
    fingerprint,
  },
  issue: {
    id,
    state: IssueState,
    stateBy: Actor,
    assignee: Assignment.properties.assignee,
    mergedInto: id,
  },
  issueFingerprint: { fingerprint, issueId: id, homeIssueId: id, facts: Facts },
  issueAffected: { fingerprint, kind: Type.Enum(['run', 'agent']) },
  issueActivity: {
    issueId: id,
    id,
    kind: IssueActivity.properties.kind,
    actor: Actor,
    text: NewComment.properties.text,
    detail: anyObject,
  },
  score: {
    run: id,
    id: fingerprint,
    eventId: EventInput.properties.eventId,
    name: scoreName,
    kind: Type.Enum([...SCORE_KINDS]),
    number: Type.Number({ minimum: -LIMITS.scoreNumberMax, maximum: LIMITS.scoreNumberMax }),
    category: Type.String({ minLength: 1, maxLength: LIMITS.scoreCategoryChars }),
    comment: text(LIMITS.scoreCommentChars, ''),
    authorKind: Type.Enum([...SCORE_AUTHORS]),
    sentAs: EventInput.properties.eventId,
  },
  run: {
    id,
    agentId: id,
    runId: EventInput.properties.runId,
    sessionId: EventInput.properties.sessionId,
    status: RunStatus,
  },
  event: {},
}

/** Returns the end of a sentence about the line; null: valid. JSON is passed as a parsed value. */
export function valueFault(type: keyof typeof SCHEMAS, member: string, value: unknown): string | null {
  if (value === null) return null
  if (typeof value === 'string' && !isStorableText(value)) return `has an invalid ${member}: it ${UNSTORABLE}`
  const schema = schemaOf(type, member, value)
  const validator = validatorOf(schema)
  if (validator.Check(value)) return null
  const [fault] = schemaFaults(schema, validator.Errors(value))
  return `has an invalid ${member}${fault?.path.replaceAll('/', '.') ?? ''}: it ${fault?.message ?? 'has the wrong form'}`
}

function schemaOf(type: keyof typeof SCHEMAS, member: string, value: unknown): TSchema {
  const rowSchema = SCHEMAS[type]
  if (Object.hasOwn(rowSchema, member)) return rowSchema[member] as TSchema
  if (typeof value === 'string') return OTHER_TEXT
  if (IS_TIME.test(member)) return TIME
  return type === 'run' ? SUM : COUNT
}
