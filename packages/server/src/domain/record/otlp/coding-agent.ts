/** Claude Code (`claude_code.*`) and Codex (`codex.*`). docs/otlp.md */
import { type Attributes, set, textOf, type Json } from './attributes.ts'
import { costFrom, countFrom, usageFrom } from './call-usage.ts'
import type { OtlpEvent } from './span-event.ts'

type AgentRecord = Pick<OtlpEvent, 'eventType' | 'label' | 'payload'>

export function agentRecordName(attributes: Attributes, body: Json | undefined): string | null {
  const name = typeof body === 'string' && body.startsWith('claude_code.') ? body : attributes.text('event.name')
  return name !== undefined && /^(claude_code|codex)\.\w/.test(name) ? name : null
}

export function agentRecord(name: string, attributes: Attributes): AgentRecord | null {
  attributes.take('event.name')
  attributes.take('event.timestamp')
  const [, event = ''] = name.split('.', 2)
  switch (event) {
    case 'user_prompt':
      return { eventType: 'USER_INPUT', label: 'user prompt', payload: set({ text: attributes.takeText('prompt') }) }
    case 'assistant_response':
      return { eventType: 'AGENT_STEP', label: 'response', payload: set({ text: attributes.takeText('response') }) }
    case 'api_error':
      return failed(name, attributes)
    case 'api_request':
      // Codex reports the tokens of a request when its stream completes.
      return name === 'claude_code.api_request' ? modelCall(attributes) : failed(name, attributes)
    case 'sse_event':
    case 'websocket_event':
      if (attributes.peek('error.message') !== undefined) return failed(name, attributes)
      return attributes.peek('input_token_count') === undefined ? null : modelCall(attributes)
    case 'tool_result':
      return toolResult(attributes)
    case 'tool_decision':
      return toolDecision(attributes)
    default:
      return step(name, attributes)
  }
}

const step = (name: string, attributes: Attributes): AgentRecord => ({
  eventType: 'AGENT_STEP',
  label: name,
  payload: set({ latency: takeNumber(attributes, 'duration_ms') }),
})

function failed(name: string, attributes: Attributes): AgentRecord {
  const message = attributes.takeText('error', 'error.message')
  const status = Number(attributes.peek('http.response.status_code') ?? 0)
  if (message === undefined && status < 400 && name !== 'claude_code.api_error') return step(name, attributes)
  const code = takeNumber(attributes, 'status_code', 'http.response.status_code')?.toString()
  const payload = set({
    message: message ?? `Status ${code ?? 'unknown'}`,
    code,
    model: attributes.takeText('model'),
    latency: takeNumber(attributes, 'duration_ms'),
    attempt: takeNumber(attributes, 'attempt'),
  })
  return { eventType: 'ERROR', label: name, payload }
}

function modelCall(attributes: Attributes): AgentRecord {
  const take = (...names: string[]) => takeNumber(attributes, ...names)
  const model = attributes.takeText('model')
  const count = (name: string) => {
    const sent = attributes.take(name)
    return sent === undefined ? undefined : countFrom(sent)
  }
  // Claude Code counts cached tokens apart, as Anthropic does, and Codex among the others.
  const usage = usageFrom(
    set({
      input_tokens: count('input_tokens'),
      output_tokens: count('output_tokens'),
      cache_read_input_tokens: count('cache_read_tokens'),
      cache_creation_input_tokens: count('cache_creation_tokens'),
      prompt_tokens: count('input_token_count'),
      completion_tokens: count('output_token_count'),
      cachedTokens: count('cached_token_count'),
      cacheWriteTokens: count('cache_write_token_count'),
      reasoningTokens: count('reasoning_token_count'),
    }),
  )
  const cost = attributes.take('cost_usd')
  const payload = set({
    model,
    usage,
    cost: cost === undefined ? undefined : costFrom(cost),
    latency: take('duration_ms'),
    timeToFirstOutput: take('ttft_ms'),
  })
  return { eventType: 'LLM_CALL', label: model ?? 'model call', payload }
}

function toolResult(attributes: Attributes): AgentRecord {
  const toolName = attributes.takeText('tool_name')
  const success = attributes.take('success')
  const isFailed = success === 'false' || success === false
  const output = attributes.takeJson('output')
  const payload = set({
    toolName,
    ...callOf(attributes),
    output: isFailed ? undefined : output,
    error: isFailed
      ? set({ message: attributes.take('error') ?? output, type: attributes.take('error_type') })
      : undefined,
    latency: takeNumber(attributes, 'duration_ms'),
  })
  return { eventType: 'TOOL_CALL', label: toolName ?? 'tool', payload }
}

const ALLOWED = new Set(['accept', 'approved', 'approved_for_session', 'approved_execpolicy_amendment'])

/** By the agent's own rules or its user, not by a policy here. */
function toolDecision(attributes: Attributes): AgentRecord {
  const toolName = attributes.takeText('tool_name')
  const decision = attributes.takeText('decision')
  const action = ALLOWED.has(decision ?? '') ? 'ALLOW' : 'BLOCK'
  const source = attributes.takeText('source')
  const payload = set({ action, toolName, decision, source, ...callOf(attributes) })
  return { eventType: 'POLICY_DECISION', label: `${action} ${toolName ?? 'tool'}`, payload }
}

function callOf(attributes: Attributes): Record<string, Json | undefined> {
  const input = attributes.takeJson('tool_input', 'arguments')
  return {
    toolCallId: attributes.takeText('tool_use_id', 'call_id'),
    input: input ?? attributes.takeJson('tool_parameters'),
  }
}

/** Both agents send some numbers as texts. */
function takeNumber(attributes: Attributes, ...names: string[]): number | undefined {
  const found = attributes.peek(...names)
  const number = typeof found === 'number' ? found : Number(textOf(found) ?? Number.NaN)
  if (!Number.isFinite(number)) return undefined
  attributes.take(...names)
  return number
}
