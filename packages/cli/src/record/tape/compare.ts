/**
 * Compares values of a tape with those of the running agent. Masked parts of the tape match anything. Model requests
 * are compared by content, because frameworks write messages in different forms.
 */
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { messagesOf, type Message } from '../../../../sdk/src/integrations/messages.ts'

export interface Difference {
  /** Path of the member, such as `input.order.id`. */
  path: string
  /** Undefined: the member is missing. */
  tape: unknown
  now: unknown
}

/** Paths that may differ, each a list of names: `tool.input.requestId`, `refund.input.at`, `model.system`. `*` is any name. */
export type Ignored = readonly (readonly string[])[]

export const NOTHING_IGNORED: Ignored = []

const DIFFERENCES_MAX = 20

/** @param path where both values are, for example `tool`, `input`. */
export function differencesOf(tape: unknown, now: unknown, path: readonly string[], ignored: Ignored): Difference[] {
  const differences: Difference[] = []
  compare(tape, now, path, ignored, differences)
  return differences
}

function compare(
  tape: unknown,
  now: unknown,
  path: readonly string[],
  ignored: Ignored,
  differences: Difference[],
): void {
  // Most values are equal: compare them before the path is needed.
  if (Object.is(tape, now)) return
  if (differences.length >= DIFFERENCES_MAX || isIgnored(path, ignored)) return
  if (Array.isArray(tape) && Array.isArray(now)) {
    for (let at = 0; at < Math.max(tape.length, now.length); at++)
      if (!Object.is(tape[at], now[at])) compare(tape[at], now[at], [...path, String(at)], ignored, differences)
    return
  }
  if (isObject(tape) && isObject(now)) {
    const compareMember = (name: string) => {
      const [before, after] = [memberOf(tape, name), memberOf(now, name)]
      if (!Object.is(before, after)) compare(before, after, [...path, name], ignored, differences)
    }
    for (const name of Object.keys(tape)) compareMember(name)
    for (const name of Object.keys(now)) if (!Object.hasOwn(tape, name)) compareMember(name)
    return
  }
  if (!isSame(tape, now)) differences.push({ path: path.slice(1).join('.') || path.join('.'), tape, now })
}

function memberOf(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined
}

export function isIgnored(path: readonly string[], ignored: Ignored): boolean {
  return ignored.some((one) => one.length <= path.length && one.every((name, at) => name === '*' || name === path[at]))
}

/** Matches a mask. It never extends beyond the next bracket, so a stranger's long text is read only once. */
export const MARK = /\[masked(?::[^\][]*)?\]/

function isSame(tape: unknown, now: unknown): boolean {
  if (typeof tape !== 'string' || !MARK.test(tape)) return false
  const parts = tape.split(MARK)
  if (parts.every((idPart) => idPart === '')) return true
  if (typeof now !== 'string') return false
  const [first = '', ...more] = parts
  const last = more.pop() ?? ''
  if (now.length < first.length + last.length || !now.startsWith(first) || !now.endsWith(last)) return false
  let at = first.length
  for (const moreText of more) {
    const next = now.indexOf(moreText, at)
    if (next === -1) return false
    at = next + moreText.length
  }
  return at <= now.length - last.length
}

/** A text, a call or a result. Ids are left out, because each run has new ones. */
export type Atom =
  | { role: string; text: unknown }
  | { role: 'call'; name: unknown; input: unknown }
  | { role: 'result'; value: unknown }

export function atomsOf(messages: unknown): Atom[] {
  return recordedMessages(messages).flatMap((message): Atom[] => {
    const { role, content, toolCalls = [] } = message
    const calls = toolCalls.map((call): Atom => {
      const { name, arguments: input } = isObject(call) ? call : {}
      return { role: 'call', name, input: plain(input ?? {}) }
    })
    if (role === 'tool') return [{ role: 'result', value: plain(joined(content)) }, ...calls]
    const text = joined(content)
    const messageRole = role === 'developer' ? 'system' : String(role)
    return [...(text === '' || text === undefined ? [] : [{ role: messageRole, text }]), ...calls]
  })
}

/** Integrations record messages in the form of `messagesOf`; hosts may record any form. */
export function recordedMessages(rawMessages: unknown): Message[] {
  const isMade = (message: unknown) => isObject(message) && ('toolCalls' in message || 'toolCallId' in message)
  const list = Array.isArray(rawMessages)
    ? (rawMessages as unknown[])
    : rawMessages === undefined || rawMessages === null
      ? []
      : [rawMessages]
  return list.flatMap((message) =>
    isMade(message) ? [message as Message] : messagesOf(typeof message === 'string' ? message : [message]),
  )
}

/**
 * The differences of two requests. `model.<role>` ignores messages by role, for example a system prompt with the time.
 */
export function requestDifferences(tape: unknown, now: unknown, ignored: Ignored): Difference[] {
  return differencesOf(comparedAtoms(tape, ignored), comparedAtoms(now, ignored), ['model', 'messages'], [])
}

function comparedAtoms(messages: unknown, ignored: Ignored): Atom[] {
  const skipped = new Set(ignored.flatMap(([of, role, ...more]) => (of === 'model' && more.length === 0 ? [role] : [])))
  return atomsOf(messages).filter(({ role }) => !skipped.has(role))
}

/** The first text that differs between two requests, shortened. Undefined: no text differs. */
export function changedText(tape: unknown, now: unknown, ignored: Ignored): string | undefined {
  const others = comparedAtoms(now, ignored)
  for (const [at, atom] of comparedAtoms(tape, ignored).entries()) {
    const other = others[at]
    if (other && differencesOf(atom, other, ['atom'], NOTHING_IGNORED).length === 0) continue
    if (!other || !('text' in atom && 'text' in other) || atom.role !== other.role) return undefined
    if (typeof atom.text !== 'string' || typeof other.text !== 'string') return undefined
    const [before, after] = shortPair(atom.text, other.text).map((text) => JSON.stringify(text))
    return `another ${atom.role} text: ${before} is now ${after}`
  }
  return undefined
}

const CHANGE_CHARS = 100
const AROUND_CHARS = 24

/** Short extracts of two texts around their first difference. */
export function shortPair(one: string, other: string): [one: string, other: string] {
  if (one.length <= CHANGE_CHARS && other.length <= CHANGE_CHARS) return [one, other]
  let [from, end] = [0, 0]
  const shorter = Math.min(one.length, other.length)
  while (from < shorter && one[from] === other[from]) from++
  while (end < shorter - from && one.at(-1 - end) === other.at(-1 - end)) end++
  from = Math.max(0, from - AROUND_CHARS)
  return [one, other].map((text) => {
    const to = Math.min(Math.max(from, text.length - end + AROUND_CHARS), from + CHANGE_CHARS, text.length)
    return `${from > 0 ? '…' : ''}${text.slice(from, to).toWellFormed()}${to < text.length ? '…' : ''}`
  }) as [string, string]
}

/** The texts of a message's content. Leaves out thoughts; an image becomes the name of its kind. */
function joined(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? undefined
  const texts = content.flatMap((contentPart: unknown) => {
    if (typeof contentPart === 'string') return [contentPart]
    const { type, text } = isObject(contentPart) ? contentPart : {}
    if (typeof text === 'string' && (type === 'text' || type === 'input_text' || type === 'output_text')) return [text]
    return /think|reason/.test(String(type)) ? [] : [`[${String(type).replace(/^input_|_url$/g, '')}]`]
  })
  return texts.join('\n')
}

/** Normalises a result: some frameworks record a value, others its JSON, and an error as a text or `{ error }`. */
function plain(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value)
  const whole = typeof value === 'string' && /^\s*[[{"]/.test(value) ? jsonOr(value) : value
  return isObject(whole) && Object.keys(whole).join() === 'error' ? whole['error'] : whole
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
