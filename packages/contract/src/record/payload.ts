/**
 * Payload fields that the service and its console read (design: "Payload conventions"). All fields are optional, extra
 * fields are allowed, and a payload that breaks a convention is still stored unchanged. In metadata-only mode a client
 * omits text, messages, input and output.
 */
import Type, { type Static, type TProperties, type TSchema } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { POLICY_ACTIONS, RUN_OUTCOMES, SCORE_NAME_PATTERN } from '../engine/words.ts'

const convention = <Properties extends TProperties>($id: string, description: string, properties: Properties) =>
  Type.Partial(Type.Object(properties), { $id, description })

const text = (description: string) => Type.String({ description })
const any = (description: string) => Type.Unknown({ description })
const latency = Type.Number({ minimum: 0, description: 'Duration in milliseconds' })
const toolCall = {
  toolName: text('Name of the tool'),
  inputHash: text('Deterministic hash of the tool input, in hex; links the call to its approval'),
  approvalId: text('The approval that allowed the call'),
}

/** The names of each token count. If several are present, the first counts. */
export const TOKEN_NAMES = {
  promptTokens: ['promptTokens', 'prompt_tokens', 'inputTokens', 'input_tokens'],
  completionTokens: ['completionTokens', 'completion_tokens', 'outputTokens', 'output_tokens'],
  totalTokens: ['totalTokens', 'total_tokens'],
} as const

const tokens = (description: string) => Type.Integer({ minimum: 0, maximum: LIMITS.tokensPerCall, description })
const promptTokens = tokens('Tokens sent to the model. Other names: prompt_tokens, inputTokens, input_tokens')
const completionTokens = tokens('Tokens of its answer. Other names: completion_tokens, outputTokens, output_tokens')
const totalTokens = tokens('Defaults to the sum of the other two. Other name: total_tokens')

/** Usage and cost are added to the sums of the run. */
export const LlmCallPayload = convention('LlmCallPayload', 'Payload of an LLM_CALL', {
  model: text('Name of the model that answered'),
  requestModel: text('Name of the model that was asked for, if it is another one'),
  latency,
  cost: Type.Number({ minimum: 0, maximum: LIMITS.costPerCall, description: 'Cost of the call, shown as US dollars' }),
  usage: Type.Partial(Type.Object({ promptTokens, completionTokens, totalTokens }), {
    $id: 'LlmCallUsage',
    description: 'Tokens of one model call',
  }),
  messages: Type.Array(Type.Unknown(), { description: 'Messages sent to the model' }),
  output: any("The model's answer"),
  notCounted: text(
    'Why the call adds no tokens, cost or call to any sum: `cache` (an answer of a cache), `same_call` (seen by two instrumentations)',
  ),
})
export type LlmCallPayload = Static<typeof LlmCallPayload>

export const ToolCallPayload = convention('ToolCallPayload', 'Payload of a TOOL_CALL', {
  ...toolCall,
  input: any('Input of the tool'),
  output: any('Output of the tool'),
  error: any('Error of the tool'),
  latency,
})
export type ToolCallPayload = Static<typeof ToolCallPayload>

export const PolicyDecisionPayload = convention('PolicyDecisionPayload', 'Payload of a POLICY_DECISION', {
  ...toolCall,
  action: Type.Enum([...POLICY_ACTIONS], { description: 'The action the client took' }),
  policyIds: Type.Array(Type.String(), { description: 'The policies that matched' }),
  input: any('The tool input, masked by the client. Operators see it with the approval if the input hash matches'),
})
export type PolicyDecisionPayload = Static<typeof PolicyDecisionPayload>

export const TextPayload = convention('TextPayload', 'Payload of a USER_INPUT or AGENT_STEP', {
  text: text('What was said or done'),
})
export type TextPayload = Static<typeof TextPayload>

export const ErrorPayload = convention('ErrorPayload', 'Payload of an ERROR', {
  message: text('What went wrong'),
  code: Type.Unsafe<string | number>({ type: ['string', 'number'], description: 'Stable error code' }),
})
export type ErrorPayload = Static<typeof ErrorPayload>

export const SessionOutcomePayload = convention('SessionOutcomePayload', 'Payload of a SESSION_OUTCOME', {
  status: Type.Enum([...RUN_OUTCOMES], {
    description: 'The first stored outcome closes the run',
  }),
})
export type SessionOutcomePayload = Static<typeof SessionOutcomePayload>

/** A score's value: a number, true or false, or a word. */
export const scoreValue = Type.Unsafe<number | boolean | string>({
  anyOf: [
    { type: 'number', minimum: -LIMITS.scoreNumberMax, maximum: LIMITS.scoreNumberMax },
    { type: 'boolean' },
    { type: 'string', minLength: 1, maxLength: LIMITS.scoreCategoryChars },
  ],
  description: 'A number, true or false, or a category',
})

export const scoreName = Type.String({
  minLength: 1,
  maxLength: LIMITS.scoreNameChars,
  pattern: SCORE_NAME_PATTERN,
  description: 'What is judged, such as helpful; without < > =',
})

/** A score adds no activity to its run. The latest of each name, step and author counts. */
export const ScorePayload = convention(
  'ScorePayload',
  'Payload of a SCORE: a judgement on its run or on one step of it',
  {
    name: scoreName,
    value: scoreValue,
    comment: text(`Why; what is beyond ${LIMITS.scoreCommentChars} characters is not shown with the run`),
    targetEventId: Type.String({
      minLength: 1,
      maxLength: LIMITS.eventIdChars,
      description: 'Client event id of the step',
    }),
    author: Type.String({
      minLength: 1,
      maxLength: LIMITS.scoreAuthorChars,
      description: 'Who judged: a user or a program. Each author has a value of their own',
    }),
  },
)
export type ScorePayload = Static<typeof ScorePayload>

/** The convention for each event type that has one. */
export const PAYLOADS = {
  USER_INPUT: TextPayload,
  AGENT_STEP: TextPayload,
  LLM_CALL: LlmCallPayload,
  TOOL_CALL: ToolCallPayload,
  POLICY_DECISION: PolicyDecisionPayload,
  ERROR: ErrorPayload,
  SESSION_OUTCOME: SessionOutcomePayload,
  SCORE: ScorePayload,
} as const satisfies Record<string, TSchema>
