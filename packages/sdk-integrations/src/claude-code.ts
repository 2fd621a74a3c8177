/**
 * Simulates Claude Code for the Claude Agent SDK: the messages and hooks of version 0.3.330 in the same order, without its
 * binary of 364 MB. It calls the scripted model; `act` runs the tools.
 */
import { randomUUID } from 'node:crypto'

type Hook = (input: object, toolUseId: string, options: { signal: AbortSignal }) => Promise<HookOutput>
interface HookOutput {
  hookSpecificOutput?: {
    permissionDecision?: string
    permissionDecisionReason?: string
    updatedInput?: Record<string, unknown>
    /** Decision of the hook PermissionRequest. */
    decision?: { behavior: string; message?: string; updatedInput?: Record<string, unknown> }
  }
}

export interface QueryOptions {
  hooks?: Record<string, { hooks: Hook[] }[]>
  includePartialMessages?: boolean
  /** Ends the session and its running hooks. */
  abortController?: AbortController
}

export interface Message {
  type: string
  [name: string]: unknown
}

interface Block {
  type: string
  id: string
  name: string
  input: Record<string, unknown>
}

interface ModelEvent {
  type: string
  index: number
  message: { id: string; content: Block[] }
  content_block: Block
  delta: { text?: string; partial_json?: string; stop_reason?: string }
}

/** Cost in US dollars of each call of the model. */
export const CALL_COST = 0.25

/** Settings that a repository's settings file can change. */
export interface RepositorySettings {
  /** A hook that changes the input of a tool after all others. */
  changeInput?: (input: Record<string, unknown>) => Record<string, unknown>
  disableAllHooks?: boolean
}

export function claudeCode(
  url: string,
  act: (name: string, input: Record<string, unknown>) => string,
  { changeInput = (input) => input, disableAllHooks = false }: RepositorySettings = {},
) {
  return async function* query({
    prompt,
    options = {},
  }: {
    prompt: string
    options?: QueryOptions
  }): AsyncGenerator<Message, void> {
    const sessionId = randomUUID()
    const sessionMessage = (message: Message): Message => ({ ...message, session_id: sessionId, uuid: randomUUID() })
    const messages: object[] = [{ role: 'user', content: prompt }]

    const runHooks = async (event: string, id: string, more: object): Promise<HookOutput[]> => {
      const input = { session_id: sessionId, hook_event_name: event, tool_use_id: id, ...more }
      const { signal } = options.abortController ?? new AbortController()
      const hooks = disableAllHooks ? [] : (options.hooks?.[event] ?? []).flatMap((matcher) => matcher.hooks)
      return await Promise.all(hooks.map((hook) => hook(input, id, { signal })))
    }

    async function runTool({ id, name, input: asked }: Block): Promise<object> {
      const outputs = await runHooks('PreToolUse', id, { tool_name: name, tool_input: asked })
      const denied = outputs.find((output) => output.hookSpecificOutput?.permissionDecision === 'deny')
      const result = { type: 'tool_result', tool_use_id: id }
      if (denied) {
        const reason = denied.hookSpecificOutput?.permissionDecisionReason
        return { ...result, content: `PreToolUse:${name} hook error: ${reason}`, is_error: true }
      }
      const updated = outputs.find((output) => output.hookSpecificOutput?.updatedInput)?.hookSpecificOutput
        ?.updatedInput
      const permissions = await runHooks('PermissionRequest', id, { tool_name: name, tool_input: updated ?? asked })
      const decision = permissions.find((output) => output.hookSpecificOutput?.decision)?.hookSpecificOutput?.decision
      if (decision?.behavior === 'deny') return { ...result, content: decision.message, is_error: true }
      const input = changeInput(decision?.updatedInput ?? updated ?? asked)
      const call = { tool_name: name, tool_input: input }
      try {
        const content = [{ type: 'text', text: act(name, input) }]
        await runHooks('PostToolUse', id, { ...call, tool_response: content, duration_ms: 21 })
        return { ...result, content }
      } catch (error) {
        const { message } = error as Error
        await runHooks('PostToolUseFailure', id, { ...call, error: message, is_interrupt: false, duration_ms: 21 })
        return { ...result, content: message, is_error: true }
      }
    }

    yield sessionMessage({ type: 'system', subtype: 'init', model: 'claude-opus-5-5' })
    for (let turns = 1; ; turns++) {
      yield sessionMessage({ type: 'system', subtype: 'status', status: 'requesting' })
      const blocks: Block[] = []
      let message: ModelEvent['message'] | undefined
      for await (const event of ask(url, messages)) {
        if (event.type === 'message_start') message = event.message
        const block = addEvent(blocks, event)
        // One message for each block, with the tokens that the start reports.
        if (block)
          yield sessionMessage({
            type: 'assistant',
            parent_tool_use_id: null,
            message: { ...message, content: [block] },
          })
        if (options.includePartialMessages)
          yield sessionMessage({ type: 'stream_event', parent_tool_use_id: null, event })
      }
      messages.push({ role: 'assistant', content: blocks })
      const calls = blocks.filter(({ type }) => type === 'tool_use')
      const results: object[] = []
      for (const call of calls) {
        const result = await runTool(call)
        results.push(result)
        yield sessionMessage({ type: 'user', parent_tool_use_id: null, message: { role: 'user', content: [result] } })
      }
      if (calls.length === 0) {
        const total = { total_cost_usd: turns * CALL_COST, num_turns: turns, duration_ms: 300 }
        yield sessionMessage({ type: 'result', subtype: 'success', is_error: false, result: blocks.at(-1), ...total })
        return
      }
      messages.push({ role: 'user', content: results })
    }
  }
}

/** A block that is complete with this event. */
function addEvent(blocks: Block[], { type, index, content_block: start, delta }: ModelEvent): object | undefined {
  const block = blocks[index] as (Block & { text?: string; json?: string }) | undefined
  if (type === 'content_block_start') blocks[index] = { ...start }
  if (block && type === 'content_block_delta') {
    if (delta.text !== undefined) block.text += delta.text
    if (delta.partial_json !== undefined) block.input = JSON.parse(delta.partial_json) as Record<string, unknown>
  }
  return type === 'content_block_stop' ? block : undefined
}

async function* ask(url: string, messages: readonly object[]): AsyncGenerator<ModelEvent> {
  const body = JSON.stringify({ model: 'claude-opus-5-5', stream: true, messages })
  const response = await fetch(`${url}/v1/messages`, { method: 'POST', body })
  if (!response.ok) throw new Error(await response.text())
  for (const line of (await response.text()).split('\n')) {
    if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as ModelEvent
  }
}
