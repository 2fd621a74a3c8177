/**
 * The history of a run, from its events: the same in a client, which sees them before they are masked, and on the server. The
 * user's words and the outputs of unguarded tools come from the messages of model calls, everything else from guarded calls.
 */
import type { Action } from '../decide.ts'
import type { Facts } from '../language/variables.ts'
import { RunHistory } from './run-history.ts'
import { labelsOfCall, type ToolLabels } from './tool-labels.ts'

const REMEMBERED_MAX = 1_000
/** Longer texts of the user are read again with each model call. */
const SAID_CHARS_MAX = 1_000
const MESSAGES_MAX = 10_000

type Fields = Readonly<Record<string, unknown>>

export class RecordedHistory {
  readonly history: RunHistory
  readonly #rules: () => readonly ToolLabels[]
  readonly #now: () => number
  /** Texts of the user that were read, because each model call repeats the conversation. */
  readonly #said = new Set<string>()
  /** Names and arguments of calls that models asked for, by id. */
  readonly #asked = new Map<string, { readonly name: string; readonly input: Fields | null }>()
  /** Ids of calls whose output was read. */
  readonly #read = new Set<string>()
  /** Decisions by tool and input. */
  readonly #decisions = new Map<string, Action>()

  /** @param now Unix time in milliseconds @param later see `RunHistory` */
  constructor(rules: () => readonly ToolLabels[], now: () => number, later?: (act: () => void) => void) {
    this.history = new RunHistory(later)
    this.#rules = rules
    this.#now = now
  }

  /** Adds an event of the run. Events of other types do not change the history. */
  see(type: string, payload: unknown): void {
    const facts = fieldsOf(payload)
    if (type === 'LLM_CALL') this.converse(facts['messages'])
    else if (type === 'USER_INPUT') this.history.said(payload)
    else if (type === 'POLICY_DECISION') this.#decided(facts)
    else if (type === 'TOOL_CALL') this.#ended(facts)
  }

  /** Adds the conversation so far, from a request to a model. */
  converse(messages: unknown): void {
    if (typeof messages === 'string') return this.#userSaid(messages)
    if (!Array.isArray(messages)) return
    for (const message of messages.slice(-MESSAGES_MAX).map(fieldsOf)) {
      const { role, content, toolCalls, toolCallId } = message
      for (const call of Array.isArray(toolCalls) ? toolCalls.map(fieldsOf) : []) this.#askedFor(call)
      if (role === 'user') for (const text of textsOf(content)) this.#userSaid(text)
      if (role === 'tool' && typeof toolCallId === 'string') this.#answered(toolCallId, content)
    }
  }

  #userSaid(text: string): void {
    if (text.length > SAID_CHARS_MAX || remember(this.#said, text)) this.history.said(text)
  }

  #askedFor({ id, name, arguments: given }: Fields): void {
    if (typeof id !== 'string' || typeof name !== 'string' || this.#asked.has(id)) return
    this.#asked.set(id, { name, input: isFields(given) ? given : null })
    forgetOldest(this.#asked)
  }

  /** Adds the output of a tool that is not guarded. */
  #answered(id: string, output: unknown): void {
    if (!remember(this.#read, id)) return
    const { name, input } = this.#asked.get(id) ?? { name: '', input: null }
    this.#add({ name, input, output }, { ok: true, decision: 'ALLOW', output })
  }

  #decided({ action, toolName, toolServer, inputHash, input }: Fields): void {
    if (action === 'BLOCK') {
      const tool = { name: textOf(toolName), server: textOf(toolServer), input: isFields(input) ? input : null }
      this.#add(tool, { ok: false, decision: 'BLOCK' })
    } else if (action === 'WARN' || action === 'REQUIRE_APPROVAL') {
      this.#decisions.set(`${textOf(inputHash)} ${textOf(toolName)}`, action)
      forgetOldest(this.#decisions)
    }
  }

  #ended({ toolName, toolServer, toolCallId, input, inputHash, output, error, outcome }: Fields): void {
    if (outcome === 'never_ran') return
    if (typeof toolCallId === 'string') remember(this.#read, toolCallId)
    const hasFailed = error !== undefined
    // After a failure, a model gets the text of the error.
    const read = hasFailed ? (isFields(error) ? error['message'] : error) : (output ?? null)
    const tool = {
      name: textOf(toolName),
      server: textOf(toolServer),
      input: isFields(input) ? input : null,
      output: read,
    }
    const decision = this.#decisions.get(`${textOf(inputHash)} ${textOf(toolName)}`) ?? 'ALLOW'
    this.#add(tool, { ok: !hasFailed && (outcome ?? 'returned') === 'returned', decision, output: read })
  }

  #add(tool: Facts['tool'], ended: { ok: boolean; decision: Action; output?: unknown }): void {
    const { does, output: labels } = labelsOfCall(this.#rules(), { tool, now: this.#now() })
    this.history.ended({ tool: tool.name, input: tool.input ?? null, does, labels, ...ended })
  }
}

function fieldsOf(given: unknown): Fields {
  return isFields(given) ? given : {}
}

function isFields(given: unknown): given is Fields {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

function textOf(given: unknown): string {
  return typeof given === 'string' ? given : ''
}

/** The texts of a message, which is a text or has parts with texts. */
function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  const parts: unknown[] = Array.isArray(content) ? content : []
  return parts.map((part) => (isFields(part) ? part['text'] : part)).filter((text) => typeof text === 'string')
}

/** Adds a text. False if it was already there. */
function remember(known: Set<string>, text: string): boolean {
  if (known.has(text)) return false
  known.add(text)
  forgetOldest(known)
  return true
}

function forgetOldest(known: Set<string> | Map<string, unknown>): void {
  const [oldest] = known.size > REMEMBERED_MAX ? known.keys() : []
  if (oldest !== undefined) known.delete(oldest)
}
