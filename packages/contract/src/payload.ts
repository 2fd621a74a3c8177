/**
 * What the service and its console read from payloads (design: "Payload conventions"). All of it is optional, more is
 * allowed, and nothing is rejected for it: a payload is kept as it was sent. In metadata-only mode a client leaves out
 * text, messages, input and output.
 */
import Type, { type Static, type TProperties, type TSchema } from 'typebox'
import { POLICY_ACTIONS } from './runtime-config.ts'

/** What may close a run. */
export const RUN_OUTCOMES = ['COMPLETED', 'FAILED', 'CANCELLED'] as const

const convention = <Properties extends TProperties>($id: string, description: string, properties: Properties) =>
  Type.Partial(Type.Object(properties), { $id, description })

const text = (description: string) => Type.String({ description })
const any = (description: string) => Type.Unknown({ description })
const latency = Type.Number({ minimum: 0, description: 'How long it took, in milliseconds' })
const toolCall = {
  toolName: text('Name of the tool'),
  inputHash: text('Deterministic hash of the tool input, in hex; links the call to its approval'),
  approvalId: text('The approval that the call was made with'),
}

/** Usage and cost add to the sums of the run. */
export const LlmCallPayload = convention('LlmCallPayload', 'Payload of an LLM_CALL', {
  model: text('Name of the model'),
  latency,
  cost: Type.Number({ minimum: 0, description: 'What the call cost' }),
  usage: Type.Partial(
    Type.Object({
      promptTokens: Type.Integer({ minimum: 0 }),
      completionTokens: Type.Integer({ minimum: 0 }),
      totalTokens: Type.Integer({ minimum: 0, description: 'The sum of the others when it is absent' }),
    }),
    { $id: 'LlmCallUsage', description: 'Tokens of one model call' },
  ),
  messages: Type.Array(Type.Unknown(), { description: 'What the model was sent' }),
  output: any('What the model answered'),
})
export type LlmCallPayload = Static<typeof LlmCallPayload>

export const ToolCallPayload = convention('ToolCallPayload', 'Payload of a TOOL_CALL', {
  ...toolCall,
  input: any('What the tool was given'),
  output: any('What the tool gave back'),
  error: any('What the tool failed with'),
  latency,
})
export type ToolCallPayload = Static<typeof ToolCallPayload>

export const PolicyDecisionPayload = convention('PolicyDecisionPayload', 'Payload of a POLICY_DECISION', {
  ...toolCall,
  action: Type.Enum([...POLICY_ACTIONS], { description: 'What the client did' }),
  policyIds: Type.Array(Type.String(), { description: 'The policies that matched' }),
  input: any('The tool input, masked by the client: operators see it beside the approval when its hash is the same'),
})
export type PolicyDecisionPayload = Static<typeof PolicyDecisionPayload>

export const TextPayload = convention('TextPayload', 'Payload of a USER_INPUT or AGENT_STEP', {
  text: text('What was said or done'),
})
export type TextPayload = Static<typeof TextPayload>

export const ErrorPayload = convention('ErrorPayload', 'Payload of an ERROR', {
  message: text('What went wrong'),
  code: Type.Unsafe<string | number>({ type: ['string', 'number'], description: 'Stable code of the error' }),
})
export type ErrorPayload = Static<typeof ErrorPayload>

export const SessionOutcomePayload = convention('SessionOutcomePayload', 'Payload of a SESSION_OUTCOME', {
  status: Type.Enum([...RUN_OUTCOMES], {
    description: 'The first one that is stored closes the run',
  }),
})
export type SessionOutcomePayload = Static<typeof SessionOutcomePayload>

/** The convention for each event type that has one. */
export const PAYLOADS = {
  USER_INPUT: TextPayload,
  AGENT_STEP: TextPayload,
  LLM_CALL: LlmCallPayload,
  TOOL_CALL: ToolCallPayload,
  POLICY_DECISION: PolicyDecisionPayload,
  ERROR: ErrorPayload,
  SESSION_OUTCOME: SessionOutcomePayload,
} as const satisfies Record<string, TSchema>
