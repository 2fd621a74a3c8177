/** Finds the texts of a step that can be compared with those of another step. Pure. */
import { diffWordsWithSpace } from 'diff'
import type { OperatorEvent } from '@tacho/contract/runs/operator-run.ts'
import { contentText, isObject, messagesAt, parsed, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'

export interface ComparedText {
  name: string
  text: string
  /** Whether it is JSON or the output of a program. */
  isCode: boolean
}

/** In order of preference. A step without any of these parts is compared by its whole payload. */
const PARTS: readonly [name: string, of: (payload: Json) => Omit<ComparedText, 'name'> | null][] = [
  ['Text', (payload) => textOrNull(textAt(payload, 'text') ?? contentText(payload['content']))],
  ['Sent to the model', (payload) => textOrNull(messagesText(payload, 'messages'))],
  ['Input', (payload) => value(payload['input'])],
  ['Error', (payload) => value(payload['error'] ?? payload['message'])],
  ['Output', (payload) => textOrNull(messagesText(payload, 'output')) ?? value(payload['output'])],
  ['Status', (payload) => value(payload['status'])],
]

export function partsOf({ payload }: OperatorEvent): ComparedText[] {
  const of = isObject(payload) ? payload : {}
  const parts = PARTS.flatMap(([name, read]): ComparedText[] => {
    const comparedPart = read(of)
    return comparedPart === null ? [] : [{ name, ...comparedPart }]
  })
  const whole = value(of)
  return parts.length > 0 || whole === null ? parts : [{ name: 'Payload', ...whole }]
}

const textOrNull = (text: string): Omit<ComparedText, 'name'> | null => (text === '' ? null : { text, isCode: false })

function value(of: unknown): Omit<ComparedText, 'name'> | null {
  const parsedPayload = parsed(of)
  if (parsedPayload === undefined || parsedPayload === null || parsedPayload === false) return null
  if (typeof parsedPayload === 'string') return textOrNull(parsedPayload)
  return { text: JSON.stringify(parsedPayload, null, 2), isCode: true }
}

/** The text of a message or a list of messages; empty for any other value. */
function messagesText(payload: Json, key: string): string {
  const payloadValue = payload[key]
  if (!Array.isArray(payloadValue) && !(isObject(payloadValue) && 'role' in payloadValue)) return ''
  return messagesAt(payload, key)
    .map(({ role, text, toolCalls }) =>
      [
        `${role}: ${text}`,
        ...toolCalls.map(({ name, input }) => `asks for ${name} ${JSON.stringify(input) ?? ''}`),
      ].join('\n'),
    )
    .join('\n\n')
}

/** Compares two texts word by word. Pure. */

/** Maximum number of characters of a text that are compared. */
export const COMPARED_CHARS = 40_000
/** Maximum number of differing words. Texts with more have little in common, and are shown without marks. */
const EDITS = 2_000
const COMPARE_MS = 100

export interface Word {
  text: string
  /** Whether only this text has the part. */
  isOwn: boolean
}

export interface BothWords {
  a: Word[]
  b: Word[]
}

/** Null if the texts differ too much. */
export function wordsOf(a: string, b: string): BothWords | null {
  const [left, right] = [a.slice(0, COMPARED_CHARS).toWellFormed(), b.slice(0, COMPARED_CHARS).toWellFormed()]
  const changes = diffWordsWithSpace(left, right, { maxEditLength: EDITS, timeout: COMPARE_MS })
  if (!changes) return null
  const words = (isOther: 'added' | 'removed', isOwn: 'added' | 'removed') =>
    changes.flatMap((change) => (change[isOther] ? [] : [{ text: change.value, isOwn: change[isOwn] }]))
  return { a: words('added', 'removed'), b: words('removed', 'added') }
}
