/**
 * The events of a load, each of EVENT_BYTES bytes of JSON. Changing texts have a fixed width, so the next request is
 * made by overwriting digits.
 */
export const BATCH_EVENTS = 100
export const EVENT_BYTES = 940

export interface Step {
  type: string
  label: string
  payload: Record<string, unknown>
}

/** The texts that differ between events, each of a fixed width. */
export interface Variable {
  eventId: string
  runId: string
  sessionId: string
  agentId: string
  timestamp: string
}

const TEXT =
  'The customer asks for a refund of an order that arrived damaged. The order was delivered within the last thirty days, ' +
  'the photographs show the damage, and the account has no earlier claims, so the refund is within the policy. '

const MODEL_CALL: Step = {
  type: 'LLM_CALL',
  label: 'Decide what to do next',
  payload: {
    model: 'gpt-5-mini',
    latency: 812,
    cost: 0.00231,
    usage: { promptTokens: 1204, completionTokens: 96, totalTokens: 1300 },
  },
}
const STEPS: readonly Step[] = [
  MODEL_CALL,
  { type: 'POLICY_DECISION', label: 'refund_order may run', payload: { action: 'ALLOW', toolName: 'refund_order' } },
  { type: 'TOOL_CALL', label: 'refund_order', payload: { toolName: 'refund_order', latency: 91, error: null } },
  { type: 'AGENT_STEP', label: 'Read the result', payload: { step: 'observe' } },
]
/** A failed call, as the SDKs record it. */
const FAILED_CALL: Step = {
  type: 'TOOL_CALL',
  label: 'refund_order',
  payload: {
    toolName: 'refund_order',
    latency: 3_000,
    error: 'TimeoutError: no answer after 3000 ms',
    exception: {
      type: 'TimeoutError',
      message: 'no answer after 3000 ms',
      stack:
        'TimeoutError: no answer after 3000 ms\n    at refundOrder (file:///app/tools/refund.ts:41:11)\n    at async main (file:///app/main.ts:9:3)',
    },
  },
}
const INPUT: Step = { type: 'USER_INPUT', label: 'Question', payload: { channel: 'chat' } }

/**
 * The step of an event, or the outcome with which it ends its run. `failed`: the number of failed events in a request.
 */
export function stepAt(index: number, isFirst: boolean, outcome: string | null, failed = 0): Step {
  if (isFirst) return INPUT
  if (outcome !== null) return { type: 'SESSION_OUTCOME', label: 'The run ended', payload: { status: outcome } }
  const failedBefore = (next: number) => Math.floor((next * failed) / (BATCH_EVENTS - 2))
  if (failedBefore(index) > failedBefore(index - 1)) return FAILED_CALL
  return STEPS[index % STEPS.length] ?? MODEL_CALL
}

/** The JSON text of an event, padded to the common length. */
export function eventText(step: Step, variable: Variable): string {
  const missing = EVENT_BYTES - build(step, variable, '').length
  return build(step, variable, TEXT.repeat(Math.ceil(missing / TEXT.length)).slice(0, missing))
}

function build({ type, label, payload }: Step, { timestamp, ...texts }: Variable, text: string): string {
  const own = { clientId: 'bench-client', agentName: 'Support agent', eventType: type, label, schemaVersion: '1' }
  const padded = { ...payload, spanId: '5b0f9e6c1d2a4e33', text }
  return JSON.stringify({ ...texts, ...own, timestamp: Number(timestamp), payload: padded })
}
