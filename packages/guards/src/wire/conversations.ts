/**
 * Groups the requests of a program into conversations. A request continues a conversation if it has results of its open tool
 * calls, names one of its answers, or begins with its messages.
 *
 *   quiet --a request continues it--> asking --the answer asks for tools--> working --a request has results--> asking
 *     ^---------------------------------/ the answer is final, or failed
 *
 * Any other request begins a conversation in the program's run. The conversation gets its own run if
 *   - its prompt is in the input of an open tool call: the call's conversation is its parent, and its run ends with the call;
 *   - another conversation is asking;
 *   - another conversation is working, and this one has tools, but not the same tools and system prompt.
 */
import { hash } from 'node:crypto'
import type { Run } from '@tacho/sdk'
import type { Context } from '../../../sdk/src/recording/context.ts'
import { fields, text } from '../../../sdk/src/integrations/host.ts'
import type { Message } from '../../../sdk/src/integrations/messages.ts'

/** A tool that an answer asked for, until a request has its result. */
export interface OpenCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly raw: string | undefined
  readonly askedAt: number
  /** Context of the model call. */
  readonly context: Context
  /** The SDK itself reports that the call never ran. */
  readonly isFaulty: boolean
  /** Facts of the guard's decision, for the call's event. */
  judged: { readonly inputHash?: string; readonly approvalId?: string }
}

export interface Conversation {
  readonly run: Run
  readonly isMain: boolean
  readonly parent: { readonly conversation: Conversation; readonly callId: string } | undefined
  readonly calls: Map<string, OpenCall>
  readonly kind: string
  readonly hasTools: boolean
  /** Number of requests without an answer. */
  asking: number
  touchedAt: number
  requests: number
  hasFailed: boolean
}

export interface Asked {
  readonly messages: readonly Message[]
  readonly tools: readonly string[] | undefined
  readonly continues: string | undefined
}

export interface Place {
  readonly conversation: Conversation
  /** Messages that are new to the conversation. */
  readonly added: readonly Message[]
  readonly isNew: boolean
}

export type OpenRun = (parent: { conversation: Conversation; call: OpenCall } | undefined, isMain: boolean) => Run

const CONVERSATIONS_MAX = 1_000
const STATES_MAX = 20_000
/** Inputs that are shorter than this are not compared with prompts: they could be part of any prompt. */
const PROMPT_CHARS_MIN = 12

export class Conversations {
  readonly #open: OpenRun
  readonly #isShared: boolean
  readonly all = new Set<Conversation>()
  /** Conversations, by a hash of their messages so far. */
  readonly #states = new Map<string, Conversation[]>()
  readonly #answers = new Map<string, Conversation>()

  /** @param isShared several programs share the proxy: each conversation is a run of its own. */
  constructor(open: OpenRun, isShared = false) {
    this.#open = open
    this.#isShared = isShared
  }

  place(asked: Asked): Place {
    const { messages } = asked
    const ownMessages = messages.filter(({ role }) => !OF_THE_PROGRAM.has(String(role)))
    const kind = kindOf(asked)
    const states = statesOf(ownMessages)
    // A request without messages, for example for embeddings.
    const latest = ownMessages.length === 0 && asked.continues === undefined ? [...this.all].at(-1) : undefined
    const known = latest ? { conversation: latest, from: 0 } : this.#known(asked, ownMessages, states, kind)
    const { conversation, from } = known ?? { conversation: undefined, from: 0 }
    const placed = conversation ?? this.#begin(asked, ownMessages, kind)
    placed.asking++
    placed.touchedAt = Date.now()
    placed.requests++
    placed.hasFailed = false
    const last = states.at(-1)
    if (last !== undefined) {
      const others = (this.#states.get(last) ?? []).filter((one) => one !== placed)
      put(this.#states, last, [...others, placed].slice(-16), STATES_MAX)
    }
    // Messages from another process are history, not new in this run.
    const isHistory = conversation === undefined && asked.continues === undefined
    const lastInput = ownMessages.findLastIndex(({ role }) => role === 'user')
    return {
      conversation: placed,
      added: ownMessages.slice(isHistory ? Math.max(0, lastInput) : from),
      isNew: conversation === undefined,
    }
  }

  /** @param answerId a later request may name the answer by this id. */
  answered(conversation: Conversation, calls: readonly OpenCall[], answerId: string | undefined): void {
    conversation.asking--
    conversation.touchedAt = Date.now()
    for (const call of calls) put(conversation.calls, call.id, call, 1_000)
    if (answerId !== undefined) put(this.#answers, answerId, conversation, STATES_MAX)
  }

  failed(conversation: Conversation): void {
    conversation.asking--
    conversation.hasFailed = true
  }

  /** The runs that this call began. */
  childrenOf(conversation: Conversation, callId: string): Conversation[] {
    return [...this.all].filter(({ parent }) => parent?.conversation === conversation && parent.callId === callId)
  }

  forget(conversation: Conversation): void {
    this.all.delete(conversation)
  }

  #known({ continues }: Asked, ownMessages: readonly Message[], states: readonly string[], kind: string) {
    const answering = this.#answering(ownMessages)
    const named = continues === undefined ? undefined : this.#answers.get(continues)
    if (named && this.all.has(named)) return { conversation: named, from: 0 }
    for (let count = states.length; count > 0; count--) {
      const known = (this.#states.get(states[count - 1] as string) ?? []).filter((one) => this.all.has(one))
      // The same request again is a retry, unless the first one still waits.
      const free = count === states.length ? known.filter(({ asking }) => asking === 0) : known
      const answered = answering
        ? known.find((one) => one === answering)
        : (free.findLast((one) => one.kind === kind) ?? free.at(-1))
      if (answered) return { conversation: answered, from: count }
    }
    // The program may have shortened earlier messages.
    return answering && { conversation: answering, from: lastResults(ownMessages) }
  }

  #answering(ownMessages: readonly Message[]): Conversation | undefined {
    const ids = ownMessages.slice(lastResults(ownMessages)).flatMap(({ toolCallId }) => text(toolCallId) ?? [])
    return ids.length === 0 ? undefined : [...this.all].findLast(({ calls }) => ids.some((id) => calls.has(id)))
  }

  #begin({ tools }: Asked, ownMessages: readonly Message[], kind: string): Conversation {
    const hasTools = (tools?.length ?? 0) > 0
    const parent = this.#parentOf(ownMessages)
    const busy = [...this.all].filter(({ asking, calls }) => asking > 0 || calls.size > 0)
    const isBeside = busy.some(
      (one) =>
        // The other one waits for its answer. Exception: the main conversation began with one request without tools, which
        // only asks for a title.
        (one.asking > 0 && !(hasTools && one.isMain && !one.hasTools && one.requests === 1)) ||
        (one.calls.size > 0 && hasTools && one.kind !== kind),
    )
    const isMain = parent === undefined && !isBeside && !this.#isShared
    const conversation: Conversation = {
      run: this.#open(parent, isMain),
      isMain,
      parent: parent && { conversation: parent.conversation, callId: parent.call.id },
      calls: new Map(),
      kind,
      hasTools,
      asking: 0,
      touchedAt: 0,
      requests: 0,
      hasFailed: false,
    }
    this.all.add(conversation)
    for (const oldest of this.all) if (this.all.size > CONVERSATIONS_MAX && oldest.asking === 0) this.all.delete(oldest)
    return conversation
  }

  /** The open tool call whose input contains the prompt of these messages. */
  #parentOf(ownMessages: readonly Message[]): { conversation: Conversation; call: OpenCall } | undefined {
    const prompt = textIn(ownMessages.find(({ role }) => role === 'user')?.content)
    if (prompt.trim() === '') return undefined
    const open = [...this.all].flatMap((conversation) =>
      [...conversation.calls.values()].map((call) => ({ conversation, call })),
    )
    const isExact = ({ call }: { call: OpenCall }) => textsIn(call.input).some((value) => value === prompt)
    const isPart = ({ call }: { call: OpenCall }) =>
      textsIn(call.input).some((value) => value.length >= PROMPT_CHARS_MIN && prompt.includes(value))
    // If several calls have the same input, prefer one that has not begun a conversation yet.
    const isFree = ({ conversation, call }: { conversation: Conversation; call: OpenCall }) =>
      this.childrenOf(conversation, call.id).length === 0
    const exact = open.filter(isExact)
    return exact.find(isFree) ?? exact[0] ?? (this.#isShared ? undefined : open.find(isPart))
  }
}

const OF_THE_PROGRAM = new Set(['system', 'developer'])

/** Index of the first tool result at the end of the messages. */
function lastResults(ownMessages: readonly Message[]): number {
  return ownMessages.findLastIndex(({ role }) => role === 'assistant') + 1
}

/** A hash of system prompt and tools. It tells agents apart that get the same prompt. */
function kindOf({ messages, tools }: Asked): string {
  const system = messages.filter(({ role }) => OF_THE_PROGRAM.has(String(role))).map(({ content }) => content)
  return hash('sha256', plain([system, tools ?? null]))
}

/** Hashes of the first message, of the first two, and so on. */
function statesOf(ownMessages: readonly Message[]): string[] {
  let before = ''
  return ownMessages.map((message) => (before = hash('sha256', before + plain(message))))
}

/** Removes cache marks, which clients move from message to message. */
function plain(rawContent: unknown): string {
  return JSON.stringify(rawContent, (key, value: unknown) => (key === 'cache_control' ? undefined : value)) ?? ''
}

function put<Value>(map: Map<string, Value>, key: string, value: Value, most: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.size > most ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}

export function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return text(fields(content)['text']) ?? ''
  return content.map(textIn).join('\n')
}

/** All strings in an input, down to the depth at which prompts occur. */
function textsIn(input: unknown, depth = 0): string[] {
  if (typeof input === 'string') return input === '' ? [] : [input]
  if (depth > 4 || typeof input !== 'object' || input === null) return []
  return Object.values(input)
    .slice(0, 100)
    .flatMap((value) => textsIn(value, depth + 1))
}
