import Type, { type Static } from 'typebox'
import { id, nullableText, nullableTime, optionalText, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { APPROVAL_STATUSES } from '../engine/words.ts'

export const ApprovalStatus = Type.Enum([...APPROVAL_STATUSES], { $id: 'ApprovalStatus' })
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number]

/** The decisions a person can make. */
export const DECISIONS = ['APPROVED', 'REJECTED'] as const
export type Decision = (typeof DECISIONS)[number]

/**
 * Identifies the client instance. Retries are idempotent within it, and other instances cannot read the request. It is
 * only a name; the secret is the API key.
 */
export const CLIENT_ID_HEADER = 'X-Service-Client-ID'

export const ApprovalHeaders = Type.Object({
  [CLIENT_ID_HEADER]: id(
    LIMITS.textChars,
    'Stable client identifier; only this client can read the approval, with the API key that asked or one that replaced it',
  ),
})

/** Firewall approval request (interface: "Firewall approval request (create)"). Unknown fields are ignored. */
export const NewApproval = Type.Object(
  {
    clientRequestId: id(
      LIMITS.textChars,
      'Stable per protected tool call. Reuse it to retry the same call; never use it for a different call',
    ),
    runId: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        minLength: 1,
        maxLength: LIMITS.runIdChars,
        description: 'External run id',
      }),
    ),
    sessionId: optionalText('External session id'),
    agentId: optionalText('External agent id'),
    policyId: optionalText('Policy that required approval'),
    toolName: id(LIMITS.textChars, 'Protected tool'),
    inputHash: Type.String({
      pattern: `^[0-9a-fA-F]{${LIMITS.inputHashDigitsMin},${LIMITS.inputHashDigitsMax}}$`,
      description: `${LIMITS.inputHashDigitsMin} to ${LIMITS.inputHashDigitsMax} hexadecimal digits: a deterministic hash of the tool input; not case-sensitive`,
    }),
    reason: optionalText('Why approval is needed, with secrets masked; stored unchanged', LIMITS.approvalBodyBytes),
    timeoutMs: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        minimum: LIMITS.approvalTimeoutMsMin,
        maximum: LIMITS.approvalTimeoutMsMax,
        default: LIMITS.approvalTimeoutMsDefault,
        description: 'Milliseconds until the request expires',
      }),
    ),
    toolCallId: optionalText("The model's id of the call"),
    policyVersion: optionalText('Version of the policy that required approval, as the runtime configuration names it'),
    policyVersions: Type.Optional(
      Type.Unsafe<Record<string, string> | null>({
        type: ['object', 'null'],
        additionalProperties: { type: 'string', maxLength: LIMITS.textChars },
        maxProperties: LIMITS.deployedPolicies,
        description:
          'Version of each policy that matched, by its id. Without them, each policy in force for two people that can mean the tool counts until the POLICY_DECISION is recorded',
      }),
    ),
    recordsInput: Type.Optional(
      Type.Unsafe<boolean | null>({
        type: ['boolean', 'null'],
        description: 'false: the client records no input for this request, so none is shown beside it',
      }),
    ),
    inputHashScheme: optionalText(
      'How `inputHash` was computed, if not as the SDKs do: then the service does not compare it with the recorded input',
    ),
  },
  {
    $id: 'NewApproval',
    description: 'A request to approve one protected tool call',
    examples: [
      {
        clientRequestId: 'order-4711-refund',
        runId: 'order-4711',
        agentId: 'billing',
        policyId: 'refund-limit',
        toolName: 'refund',
        inputHash: '6b86b273ff34fce19d6b804eff5a3f57',
        reason: 'The amount is over 100',
        timeoutMs: 300_000,
      },
    ],
  },
)
export type NewApproval = Static<typeof NewApproval>

/** The same request, as operators read it. */
export const ASKED = {
  clientId: Type.String({ description: 'Client instance that sent the request' }),
  clientRequestId: Type.String(),
  runId: nullableText('External run id'),
  sessionId: nullableText('External session id'),
  agentId: nullableText('External agent id'),
  policyId: nullableText('Policy that required approval'),
  toolName: Type.String(),
  inputHash: Type.String({ description: 'Hash of the tool input, in lower-case hex' }),
  reason: nullableText('Why approval is needed, according to the client'),
  timeoutMs: Type.Integer(),
  toolCallId: nullableText("The model's id of the call"),
}

/** Firewall approval (interface: "Firewall approval (response)"). */
export const Approval = Type.Object(
  {
    id: uuid('Approval id'),
    status: ApprovalStatus,
    expiresAt: time('When an undecided request becomes EXPIRED'),
    decidedAt: nullableTime('When a person decided; null while the request is PENDING and after it EXPIRED'),
    decisionReason: nullableText('The reason the person gave; null if there is none'),
  },
  { $id: 'Approval', description: 'The state of an approval request. Run the tool only when the status is APPROVED' },
)
export type Approval = Static<typeof Approval>

export const ApprovalParams = Type.Object({ approvalId: Type.String({ description: 'Approval id' }) })

export const ApprovalQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.approvalWaitSecondsMax,
      description:
        'Seconds to wait for a change while the request is PENDING; the reply comes as soon as it changes, or at once if very many wait',
    }),
  ),
})
