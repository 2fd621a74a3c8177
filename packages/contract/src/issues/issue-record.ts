import Type, { type Static } from 'typebox'
import { id, nullableText, optionalText, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { RECORD_KINDS, RECORD_ORIGINS, RECORD_STATUSES } from '../engine/words.ts'

export type RecordKind = (typeof RECORD_KINDS)[number]
export const RecordKind = Type.Enum([...RECORD_KINDS], { $id: 'RecordKind' })

export type RecordOrigin = (typeof RECORD_ORIGINS)[number]
export const RecordOrigin = Type.Enum([...RECORD_ORIGINS], { $id: 'RecordOrigin' })

export type RecordStatus = (typeof RECORD_STATUSES)[number]
export const RecordStatus = Type.Enum([...RECORD_STATUSES], { $id: 'RecordStatus' })

const requiredId = (description: string) => id(LIMITS.textChars, description)
const optionalObject = (description: string) =>
  Type.Optional(Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'], description }))

/** Issue record, write shape (interface: "Issue record (request)"). Unknown fields are ignored. */
export const IssueRecordInput = Type.Object(
  {
    sdkInstanceId: requiredId("Stable client identifier; should equal the clientId of the client's events"),
    clientRecordId: requiredId(
      'Idempotency key, unchanged across retries. A recovery needs a different key than its detection',
    ),
    recordKind: RecordKind,
    detectionType: requiredId('Stable detector category, for example TOOL_BLOCKED'),
    runId: optionalText('External run id'),
    sessionId: optionalText('External session id'),
    eventId: optionalText('Related event of the run'),
    agentId: requiredId('Stable external agent id'),
    policyId: optionalText('Policy that produced the decision'),
    promptVersionId: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        format: 'uuid',
        description: 'Prompt version used by the run',
      }),
    ),
    detectedAt: Type.Integer({
      minimum: 0,
      maximum: LIMITS.detectedAtMaxMs,
      description: 'Unix time in milliseconds',
    }),
    payload: optionalObject('Detector context: toolName, tools, reasonCode, model, riskSignals'),
    evidence: optionalObject('Supporting evidence, for example the decision'),
  },
  {
    $id: 'IssueRecordInput',
    description: 'A detection or recovery, as clients report it',
    examples: [
      {
        sdkInstanceId: 'billing-1',
        clientRecordId: 'rec-1',
        recordKind: 'DETECTION',
        detectionType: 'TOOL_BLOCKED',
        runId: 'order-4711',
        agentId: 'billing',
        policyId: 'refund-limit',
        detectedAt: 1_790_000_000_500,
        payload: { toolName: 'refund', reasonCode: 'OVER_LIMIT' },
        evidence: { decision: 'BLOCK' },
      },
    ],
  },
)
export type IssueRecordInput = Static<typeof IssueRecordInput>

export const IssueRecordReceipt = Type.Object(
  {
    recordId: uuid('Id of the stored record'),
    status: RecordStatus,
    isNew: Type.Boolean({
      description: 'False when a record with this sdkInstanceId and clientRecordId already existed',
    }),
    isSame: Type.Optional(
      Type.Boolean({
        description:
          "Only of a record about an approval that is not new, such as a claim: whether the stored one has the same evidence, byte by byte. With a random value in its evidence, it is then its sender's own",
      }),
    ),
  },
  { $id: 'IssueRecordReceipt', description: 'The record is stored and will be reviewed in the background' },
)
export type IssueRecordReceipt = Static<typeof IssueRecordReceipt>

/** Fields of a stored record, without payload and evidence. */
export const recordFields = {
  sdkInstanceId: Type.String(),
  clientRecordId: Type.String(),
  recordKind: RecordKind,
  detectionType: Type.String(),
  runId: nullableText('External run id'),
  sessionId: nullableText('External session id'),
  eventId: nullableText('Related event'),
  agentId: Type.String(),
  policyId: nullableText('Policy that produced the decision'),
  promptVersionId: nullableText('Prompt version used by the run'),
}
