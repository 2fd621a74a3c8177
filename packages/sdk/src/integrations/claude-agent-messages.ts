/** Records each answer of the model as a model call. */
import type { EventType } from '../recording/event.ts'
import type { Payload } from '../recording/event.ts'
import type { Tacho } from '../tacho.ts'
import { MessageStream, messageResult } from './anthropic-messages.ts'
import type { AgentTools } from './claude-agent-tools.ts'
import { beginPart, fields, number, OpenSpans, set, text, type Fields, type RunPart } from './host.ts'
import { messagesOf, type Message } from './messages.ts'
import { ModelCall, type ModelResult } from './model-call.ts'

/** The main agent, or a subagent. */
interface Conversation {
  readonly messages: Message[]
  call?: Call | undefined
  finished?: unknown
}

interface Call {
  readonly recorded: ModelCall
  /** Undefined until the answer begins. */
  id?: unknown
  /** The message so far: its blocks arrive one message each. */
  whole: Fields
  /** The events of the stream. Unlike `whole` it is complete, but Claude Code does not send it for every call. */
  stream?: MessageStream
  /** Tool results that arrived before the model's answer had ended. */
  readonly results: Message[]
}

/** Maximum number of messages that are recorded with a call: the newest ones. */
const MESSAGES_MAX = 1_000
const CONVERSATIONS_MAX = 1_000

export class AgentMessages {
  readonly #tacho: Tacho
  readonly #begin: (sessionId?: unknown) => RunPart
  readonly #tools: AgentTools
  /** Keyed by the tool use that started the agent; null for the main agent. */
  readonly #conversations = new Map<unknown, Conversation>()
  /** Tools that the model asked for, by the id of the tool use. */
  readonly #asked = new OpenSpans<string>()
  #prompts: string[] = []
  #isBegun = false
  #isEnded = false
  #status: 'COMPLETED' | 'FAILED' | undefined
  #cost = 0

  constructor(tacho: Tacho, begin: (sessionId?: unknown) => RunPart, tools: AgentTools) {
    this.#tacho = tacho
    this.#begin = begin
    this.#tools = tools
  }

  /** Records a prompt to the main agent. */
  prompt(content: unknown): void {
    const messages = messagesOf([{ role: 'user', content }])
    this.#say(this.#conversation(null), messages)
    this.#prompts.push(...messages.map((message) => text(message.content) ?? JSON.stringify(message.content)))
    if (this.#isBegun) this.#recordPrompts()
  }

  add(message: Fields): void {
    const { type, parent_tool_use_id: parent = null } = message
    if (!this.#isBegun) this.#begin(message['session_id'])
    this.#isBegun = true
    this.#recordPrompts()
    if (type === 'system') {
      if (message['status'] === 'requesting') this.#call(this.#conversation(null), null)
    } else if (type === 'stream_event') this.#addEvent(fields(message['event']), parent)
    else if (type === 'assistant') this.#addAnswer(fields(message['message']), parent)
    else if (type === 'user') {
      if (message['isReplay'] !== true) this.#noticeAnswers(fields(message['message'])['content'])
      const conversation = this.#conversation(parent)
      if (!conversation.call?.stream) this.#finish(conversation, 0)
      const results = messagesOf([fields(message['message'])])
      if (conversation.call?.stream) conversation.call.results.push(...results)
      else this.#say(conversation, results)
    } else if (type === 'result') this.#addResult(message)
  }

  /** Ends the model call, also if the host left the query. */
  end(error?: unknown): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const turnPart = this.#begin()
    this.#recordPrompts()
    for (const { call } of this.#conversations.values()) {
      if (call && error !== undefined) call.recorded.fail(error, () => resultOf(call))
      else call?.recorded.abort(() => resultOf(call))
    }
    this.#conversations.clear()
    turnPart.end(error === undefined ? (this.#status ?? 'CANCELLED') : 'FAILED')
  }

  #addEvent(event: Fields, parent: unknown): void {
    const conversation = this.#conversation(parent)
    if (event['type'] === 'message_start') {
      const { id } = fields(event['message'])
      if (conversation.call?.id !== undefined && conversation.call.id !== id) this.#finish(conversation, 0)
      const call = this.#call(conversation, parent)
      call.id = id
      call.stream = new MessageStream()
    }
    const { call } = conversation
    if (!call?.stream) return
    if (call.stream.add(event)) call.recorded.token()
    // The last call of a turn waits for the result message, which follows at once and has the cost.
    if (call.stream.isComplete && (parent !== null || call.stream.result().finishReason === 'tool_use')) {
      this.#finish(conversation, 0)
    }
  }

  /** A tool that returned a result has run, so its hook must have been asked. */
  #noticeAnswers(blocks: unknown): void {
    for (const block of list(blocks)) {
      const { type, tool_use_id: id, is_error: isError, content } = fields(block)
      if (type === 'tool_result' && isError === true) this.#tools.failed(id, content)
      if (type !== 'tool_result' || isError === true) continue
      const name = this.#asked.take(String(id))
      if (name !== undefined) this.#tools.answered(id, name)
    }
  }

  #addAnswer(answer: Fields, parent: unknown): void {
    for (const block of list(answer['content'])) {
      const { type, id, name } = fields(block)
      if (type === 'tool_use') this.#asked.set(String(id), String(name))
    }
    const conversation = this.#conversation(parent)
    const { call, finished } = conversation
    if (finished !== undefined && finished === answer['id']) return
    if (call?.id !== undefined && call.id !== answer['id']) this.#finish(conversation, 0)
    const open = this.#call(conversation, parent)
    open.id = answer['id']
    open.whole = { ...answer, content: [...list(open.whole['content']), ...list(answer['content'])] }
  }

  #addResult(result: Fields): void {
    const cost = number(result['total_cost_usd'])
    // The SDK's cost is a total since the start of the query.
    const added = cost === undefined ? undefined : Math.max(0, cost - this.#cost)
    this.#cost = cost ?? this.#cost
    const main = this.#conversation(null)
    const isPaid = main.call !== undefined && main.call.id !== undefined
    for (const conversation of this.#conversations.values())
      this.#finish(conversation, conversation === main ? added : 0)
    const isFailed = result['is_error'] === true || result['subtype'] !== 'success'
    this.#status = isFailed ? 'FAILED' : 'COMPLETED'
    const payload = set({
      result: result['result'],
      error: isFailed ? (result['errors'] ?? result['subtype']) : undefined,
      turns: result['num_turns'],
      latency: result['duration_ms'],
      ...(!isPaid && { cost: added }),
    })
    this.#record('AGENT_STEP', `result ${String(result['subtype'])}`, payload)
  }

  #conversation(parent: unknown): Conversation {
    const parentConversation = this.#conversations.get(parent)
    if (parentConversation) return parentConversation
    const [oldest] = [...this.#conversations.keys()].filter((key) => key !== null)
    if (this.#conversations.size > CONVERSATIONS_MAX) this.#conversations.delete(oldest)
    const conversation: Conversation = { messages: [] }
    this.#conversations.set(parent, conversation)
    return conversation
  }

  #call(conversation: Conversation, parent: unknown): Call {
    if (conversation.call) return conversation.call
    const context = this.#tools.contextOf(parent) ?? this.#begin().context
    const request = () => ({ provider: 'anthropic', messages: [...conversation.messages] })
    conversation.call = { recorded: new ModelCall(this.#tacho, request, { parent: context }), whole: {}, results: [] }
    return conversation.call
  }

  /**
   * The last call of a turn carries its whole cost, and the others 0: otherwise the service would estimate them too.
   */
  #finish(conversation: Conversation, cost: number | undefined): void {
    const { call } = conversation
    // A request without an answer still waits or is being retried.
    if (call?.id === undefined) return
    conversation.call = undefined
    conversation.finished = call.id
    const result = { ...resultOf(call), ...(cost !== undefined && { cost }) }
    call.recorded.end(() => result)
    const answer = result.output === undefined ? [] : [result.output as Message]
    this.#say(conversation, [...answer, ...call.results])
  }

  #say({ messages }: Conversation, more: readonly Message[]): void {
    messages.push(...more)
    messages.splice(0, messages.length - MESSAGES_MAX)
  }

  #recordPrompts(): void {
    for (const prompt of this.#prompts) this.#record('USER_INPUT', 'user input', { text: prompt })
    this.#prompts = []
  }

  #record(type: EventType, label: string, payload: Payload): void {
    const { core, context } = beginPart(this.#tacho, this.#begin().context)
    core.record(context.scope, { type, label, payload, span: context.span })
  }
}

function resultOf({ stream, whole }: Call): ModelResult {
  return { ...(stream ? stream.result() : messageResult(whole)), isGuarded: true }
}

function list(rawList: unknown): unknown[] {
  return Array.isArray(rawList) ? rawList : []
}
