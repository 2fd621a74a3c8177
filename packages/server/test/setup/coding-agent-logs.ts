/**
 * Log records as Claude Code and Codex send them: the attributes of their documentation (docs/otlp.md has the dates), in the
 * order and types seen from Claude Code 2.1.330 and Codex 0.169.0.
 */
import { anyValue, nanos, pairs, type Value } from './otlp-requests.ts'

type Attributes = Record<string, Value>

const group = (resource: Attributes, scope: string, logRecords: unknown[]) => ({
  resourceLogs: [{ resource: { attributes: pairs(resource) }, scopeLogs: [{ scope: { name: scope }, logRecords }] }],
})

/** A session of Claude Code: a prompt, a model call with two tool calls, one that fails, an overload, an answer. */
export function claudeCodeLogs(sessionId: string) {
  const start = Date.now() - 5_000
  let sequence = 0
  const record = (name: string, attributes: Attributes) => {
    const at = nanos(start + sequence)
    const shared = {
      'user.id': 'fb1cb1de',
      'session.id': sessionId,
      'terminal.type': 'non-interactive',
      'event.name': name,
      'event.timestamp': new Date(start + sequence).toISOString(),
      'event.sequence': sequence++,
      'prompt.id': 'c06ff3b0',
    }
    const body = anyValue(`claude_code.${name}`)
    return { timeUnixNano: at, observedTimeUnixNano: at, body, attributes: pairs({ ...shared, ...attributes }) }
  }
  const tokens = { input_tokens: 15, output_tokens: 10, cache_read_tokens: 5, cache_creation_tokens: 2 }
  const bash = { tool_name: 'Bash', tool_use_id: 'toolu_1' }
  const parameters = '{"bash_command":"ls","full_command":"ls -la"}'
  return group({ 'service.name': 'claude-code', 'service.version': '2.1.330' }, 'com.anthropic.claude_code.events', [
    record('user_prompt', { prompt_length: 22, prompt: 'List the files, please' }),
    record('tool_decision', { ...bash, decision: 'accept', source: 'config', tool_parameters: parameters }),
    record('tool_decision', { tool_name: 'Write', tool_use_id: 'toolu_2', decision: 'reject', source: 'user_reject' }),
    record('api_request', { model: 'claude-opus-5-5', ...tokens, cost_usd: 0.000261, duration_ms: 355, ttft_ms: 70 }),
    record('assistant_response', { response_length: 7, response: 'I look.', model: 'claude-opus-5-5' }),
    record('tool_result', {
      ...bash,
      success: 'true',
      duration_ms: '333',
      tool_parameters: parameters,
      tool_input: '{"command":"ls -la"}',
      tool_result_size_bytes: '94',
    }),
    record('tool_result', { tool_name: 'Read', success: 'false', duration_ms: '142', error: 'File does not exist' }),
    record('api_error', {
      model: 'claude-opus-5-5',
      error: 'Overloaded',
      status_code: '529',
      duration_ms: 12,
      attempt: 2,
    }),
    record('plugin_loaded', { 'plugin.name': 'agents-md' }),
  ])
}

/** A conversation of Codex: a prompt, a model call that streams, a tool call, a refusal, a failed request. */
export function codexLogs(conversationId: string) {
  const start = Date.now() - 5_000
  let count = 0
  const record = (name: string, attributes: Attributes) => {
    const at = start + count++
    const shared = {
      'event.name': `codex.${name}`,
      ...attributes,
      'event.timestamp': new Date(at).toISOString(),
      'conversation.id': conversationId,
      'app.version': '0.169.0',
      originator: 'codex_exec',
      model: 'gpt-5-codex',
      slug: 'gpt-5-codex',
    }
    return {
      timeUnixNano: '0',
      observedTimeUnixNano: nanos(at),
      severityNumber: 9,
      severityText: 'INFO',
      eventName: 'event otel/src/events/session_telemetry.rs:803',
      attributes: pairs(shared),
    }
  }
  const call = { tool_name: 'exec_command', call_id: 'call_1' }
  return group({ 'service.name': 'codex_exec', env: 'dev' }, 'codex_otel.log_only', [
    record('conversation_starts', { approval_policy: 'never', sandbox_policy: 'danger-full-access' }),
    record('user_prompt', { prompt_length: '22', prompt: 'List the files, please' }),
    record('api_request', { duration_ms: '52', 'http.response.status_code': 200, attempt: 0 }),
    record('sse_event', { 'event.kind': 'response.created', duration_ms: '0' }),
    record('sse_event', { 'event.kind': 'response.completed', duration_ms: '0' }),
    record('sse_event', {
      'event.kind': 'response.completed',
      input_token_count: '20',
      output_token_count: '10',
      cached_token_count: 5,
      reasoning_token_count: 3,
      tool_token_count: '30',
      ttft_ms: 40,
    }),
    record('tool_decision', { ...call, decision: 'approved', source: 'Config' }),
    record('tool_result', { ...call, arguments: '{"cmd":"ls"}', duration_ms: '55', success: 'true', output: 'a.txt' }),
    record('tool_decision', { tool_name: 'apply_patch', call_id: 'call_2', decision: 'denied', source: 'User' }),
    record('api_request', { 'http.response.status_code': 429, 'error.message': 'slow down', attempt: 1 }),
    record('sse_event', { 'event.kind': 'response.failed', 'error.message': 'server_error' }),
  ])
}
