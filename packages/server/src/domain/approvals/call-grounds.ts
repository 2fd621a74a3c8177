/**
 * Finds what helps a person to judge a held call: the user's words before it, and for each value of its input where it
 * occurred before: in a tool's result, in the user's words, or nowhere. Reads the newest steps before the request,
 * within bounds, and reports how many it has read.
 */
import type { CallGrounds, InputField, UserText, ValueOrigin } from '@tacho/contract/approvals/call-sentence.ts'
import type { InputCheck } from '@tacho/contract/approvals/operator-approval.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isRecordedNumber, parseRecorded } from '@tacho/contract/record/json-text.ts'
import { contentText, isObject, parsed, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { Storage } from '../../storage/storage.ts'
import { leavesOf, type InputLeaf } from './call-sentence.ts'
import { CONTENT_MARK, VALUE_MASK } from './recorded-input.ts'

const STEPS = 200
const PAYLOADS = 40
const BYTES = 1_048_576
const RESULT_LEAVES = 5_000
const TEXT_CHARS = 200_000
const ORIGINS = 2
const READ: ReadonlySet<string> = new Set(['USER_INPUT', 'LLM_CALL', 'TOOL_CALL', 'RETRIEVAL'])

type Acts = Pick<Storage, 'findEvent' | 'listEventRows' | 'findLinkedInputs'>

/** A text or a value that occurred in the run before the request. */
interface Source extends Pick<ValueOrigin, 'kind' | 'label' | 'step' | 'eventId'> {
  /** Paths of the values, by their key (`keyOf`). */
  values: ReadonlyMap<string, string>
  texts: readonly { path: string | null; text: string }[]
}

interface Past {
  /** Newest first. */
  sources: Source[]
  /** Texts of the user, in order of time. */
  said: UserText[]
  stepsRead: number
  isWhole: boolean
}

export async function callGrounds(
  storage: Acts,
  { environmentId, runId }: ApprovalRow,
  { input, eventId, check }: { input: unknown; eventId: string; check: InputCheck },
): Promise<CallGrounds | null> {
  const past = runId === null ? null : await pastBefore(storage, environmentId, runId, eventId)
  if (past === null) return null
  const leaves = leavesOf(input)
  const fields = leaves.slice(0, LIMITS.inputFields).map((leaf) => toField(leaf, check, past.sources))
  const { said, stepsRead, isWhole } = past
  const [first] = said
  const last = said.slice(1).slice(-2)
  return {
    said: first ? [first, ...last] : [],
    fields,
    moreFields: leaves.length > LIMITS.inputFields,
    stepsRead,
    isWhole,
  }
}

/** Null: the run has no such event. */
async function pastBefore(storage: Acts, environmentId: string, runId: string, eventId: string): Promise<Past | null> {
  const decision = await storage.findEvent(environmentId, runId, eventId)
  if (decision === null) return null
  const { run, event, position } = decision
  const before = position - 1
  const page = { order: 'latest' as const, after: { time: event.time, seq: event.seq }, limit: STEPS }
  const { rows } = await storage.listEventRows(environmentId, run.id, page)
  let bytes = 0
  const wanted = rows.flatMap((row, at) => {
    return READ.has(row.eventType) ? [{ row, step: before - at }] : []
  })
  const read = wanted.filter(({ row }, at) => at < PAYLOADS && (bytes += row.payloadBytes) <= BYTES)
  const links = read.map(({ row }) => ({ runId: run.runId, eventId: row.eventId }))
  const payloads = links.length === 0 ? [] : await storage.findLinkedInputs(environmentId, links, BYTES)
  const past: Past = {
    sources: [],
    said: [],
    stepsRead: rows.length,
    isWhole: rows.length === before && read.length === wanted.length,
  }
  const userTextsSeen = new Map<string, UserText>()
  const results: Source[] = []
  const repeated = new Map<string, Source>()
  // The oldest first: a conversation sends its earlier messages again with each model call.
  for (const [at, { row, step }] of [...read.entries()].toReversed()) {
    const stored = payloads[at]
    if (stored === null || stored === undefined || stored === 'too_large' || CONTENT_MARK.test(stored.payload))
      past.isWhole = false
    if (stored === null || stored === undefined || stored === 'too_large') continue
    const payload = payloadOf(stored.payload)
    const place = { label: row.label, step, eventId: row.eventId }
    for (const text of userTexts(row.eventType, payload)) {
      if (userTextsSeen.has(text)) continue
      userTextsSeen.set(text, toUserText(text, { step, eventId: row.eventId }))
      past.sources.push({ kind: 'user', ...place, values: NO_VALUES, texts: [{ path: null, text: folded(text) }] })
    }
    for (const { name, text } of row.eventType === 'LLM_CALL' ? toolMessages(payload) : []) {
      if (!repeated.has(text)) repeated.set(text, { kind: 'result', ...place, label: name, ...readable(parsed(text)) })
    }
    const output = outputOf(row.eventType, payload)
    const label = textAt(payload, 'toolName') ?? row.label
    if (output !== null) results.push({ kind: 'result', ...place, label, ...readable(parsed(output)) })
  }
  // Results from recorded calls come first, because they have more facts than the messages that repeat them.
  past.sources.push(...results.toReversed(), ...[...repeated.values()].toReversed())
  past.said = [...userTextsSeen.values()]
  return past
}

function payloadOf(text: string): Json {
  const payload = parseRecorded(text)
  return isObject(payload) ? payload : {}
}

const toUserText = (text: string, place: Pick<UserText, 'step' | 'eventId'>): UserText => ({
  text: text.slice(0, LIMITS.userTextChars).toWellFormed(),
  isCut: text.length > LIMITS.userTextChars,
  ...place,
})

function userTexts(eventType: string, payload: Json): string[] {
  if (eventType === 'USER_INPUT') return [textAt(payload, 'text') ?? contentText(payload['content'])].filter(Boolean)
  const { messages } = payload
  if (eventType !== 'LLM_CALL') return []
  if (typeof messages === 'string') return [messages]
  return messagesOf(payload)
    .filter(({ role }) => role === 'user')
    .map(({ content, text }) => contentText(content ?? text))
    .filter(Boolean)
}

const messagesOf = ({ messages }: Json): Json[] => (Array.isArray(messages) ? messages.filter(isObject) : [])

const NO_VALUES: Source['values'] = new Map()

const outputOf = (eventType: string, payload: Json): unknown =>
  (eventType === 'RETRIEVAL' ? payload['documents'] : eventType === 'TOOL_CALL' ? payload['output'] : null) ?? null

/** Results of tools as a model received them, because the calls may not be recorded. */
function toolMessages(payload: Json): { name: string; text: string }[] {
  const messages = messagesOf(payload)
  const names = new Map(messages.flatMap(callNames))
  return messages.flatMap((message) => {
    const text = message['role'] === 'tool' ? contentText(message['content']) : ''
    const id = textAt(message, 'toolCallId') ?? textAt(message, 'tool_call_id') ?? ''
    return text === '' ? [] : [{ name: textAt(message, 'name') ?? names.get(id) ?? 'a tool', text }]
  })
}

function callNames(message: Json): [string, string][] {
  const calls = message['toolCalls'] ?? message['tool_calls']
  return (Array.isArray(calls) ? calls.filter(isObject) : []).flatMap((call): [string, string][] => {
    const made = isObject(call['function']) ? call['function'] : call
    const [id, name] = [textAt(call, 'id'), textAt(made, 'name')]
    return id === null || name === null ? [] : [[id, name]]
  })
}

function readable(output: unknown): Pick<Source, 'values' | 'texts'> {
  const values = new Map<string, string>()
  const texts: { path: string | null; text: string }[] = []
  let chars = 0
  for (const { name, value } of leavesOf(output, RESULT_LEAVES)) {
    const key = keyOf(value)
    if (key !== null && !values.has(key)) values.set(key, name)
    if (typeof value !== 'string' || chars > TEXT_CHARS) continue
    chars += value.length
    texts.push({ path: name === '' ? null : name, text: folded(value) })
  }
  return { values, texts }
}

/** The same key for `917`, `917.0` and `"917"`. Null: neither a number nor a text. */
function keyOf(value: unknown): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value.trim().toLowerCase()
  return isRecordedNumber(value) ? (JSON.stringify(value) ?? '').replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') : null
}

function toField(
  { name, value }: InputLeaf,
  { result, sealed, sealedAt = [] }: InputCheck,
  sources: readonly Source[],
): InputField {
  const json = JSON.stringify(value) ?? 'null'
  const isMasked = typeof value === 'string' && VALUE_MASK.test(value)
  const isSealed = isMasked && sealed > 0 && result === 'matches'
  return {
    path: name,
    json: json.slice(0, LIMITS.inputFieldChars).toWellFormed(),
    isCut: json.length > LIMITS.inputFieldChars,
    check: isSealed || sealedAt.includes(pointerOf(name)) ? 'sealed' : result,
    origins: isMasked ? null : originsOf(name, value, sources),
  }
}

const pointerOf = (name: string): string => `/${name.replaceAll(/\[(\d+)\]/g, '.$1').replaceAll('.', '/')}`

/**
 * Finds the sources of a value. A single digit or letter occurs everywhere, so it counts only beside a key of the same
 * name. Null: the value is too short to have a source.
 */
function originsOf(name: string, value: unknown, sources: readonly Source[]): ValueOrigin[] | null {
  const key = keyOf(value)
  if (key === null) return null
  const isShort = key.length < 2
  const origins: ValueOrigin[] = []
  for (const kind of ['result', 'user'] as const) {
    const origin = sources
      .filter((source) => source.kind === kind)
      .map((source) => originIn(source, name, key, isShort))
    const first = origin.find((one) => one !== null && !one.isPart) ?? origin.find((one) => one !== null)
    if (first) origins.push(first)
  }
  return origins.length === 0 && isShort ? null : origins.slice(0, ORIGINS)
}

function originIn(
  { kind, label, step, eventId, values, texts }: Source,
  name: string,
  key: string,
  isShort: boolean,
): ValueOrigin | null {
  const origin = { kind, label, step, eventId }
  const path = values.get(key)
  if (path !== undefined && (!isShort || lastKey(path) === lastKey(name))) return { ...origin, path, isPart: false }
  if (isShort) return null
  const text = texts.find((one) => hasWord(one.text, key))
  return text === undefined ? null : { ...origin, path: text.path, isPart: true }
}

const lastKey = (path: string): string => path.split(/[.[]/).findLast((key) => !/^\d+\]$/.test(key)) ?? ''

/** Turns `one_way` and `One-way` into the same text. */
const folded = (text: string): string =>
  text
    .slice(0, TEXT_CHARS)
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, ' ')

const PART_OF_WORD = /[\p{L}\p{N}]/u

/** Whether a text has the key as a whole word; a number also with thousands separators. */
function hasWord(text: string, key: string): boolean {
  const spoken = /^\d{4,15}$/.test(key) ? key.replaceAll(/\B(?=(\d{3})+$)/g, ',') : key
  return [...new Set([folded(key).trim(), spoken])].some((word) => {
    if (word === '') return false
    for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
      const end = at + word.length
      const around = [text.charAt(at - 1), text.charAt(end)]
      // Text `917` does not occur in 1,917 or in 917.50.
      const isInNumber =
        /^\d/.test(word) &&
        (/\d[.,]$/.test(text.slice(Math.max(0, at - 2), at)) || /^[.,]\d/.test(text.slice(end, end + 2)))
      if (!isInNumber && !around.some((character) => PART_OF_WORD.test(character))) return true
    }
    return false
  })
}
