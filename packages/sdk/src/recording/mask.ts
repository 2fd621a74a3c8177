/**
 * Masks credentials and personal data before an event leaves the process.
 *
 * Every pattern runs in linear time: it begins with fixed characters or a bounded class, and nothing that can fail
 * follows an unbounded one. The mask first searches the whole JSON text for anything it could mask. Most payloads
 * contain nothing of the kind and stay unchanged.
 */
import type * as Checksum from './checksum.ts'
import {
  CREDENTIAL_FORMS,
  CREDENTIAL_MARK,
  HEADER_NAME,
  isCount,
  kindOfName,
  maskAssignments,
  MAYBE_FORM,
  MAYBE_NAMED,
  OTHER_FORM,
  type NameKind,
} from './credentials.ts'
import { replaceJson, rewritten } from './embedded-json.ts'
import { readSafely, type Json } from './json.ts'
import { CARD_RUN, IBAN_RUN } from './number-runs.ts'

export interface MaskingOptions {
  /** Values under names such as `password` or `apiKey`, and well-known forms of secrets in texts. Default: true. */
  credentials?: boolean | undefined
  /** E-mail addresses. Default: false. */
  email?: boolean | undefined
  /** Payment card numbers with a valid checksum (Luhn). Default: false. */
  cardNumber?: boolean | undefined
  /** Phone numbers: international ones, and ten digits in groups. Default: false. */
  phone?: boolean | undefined
  /** International bank account numbers with a valid checksum. Default: false. */
  iban?: boolean | undefined
  /** More names whose values are masked. Case, `-`, `_`, `.` and spaces make no difference. */
  keys?: readonly string[] | undefined
  /** More patterns whose matches are masked. They run on whole texts, so keep them linear. */
  patterns?: readonly RegExp[] | undefined
  /** Called with each remaining text; returns the text to record. If it throws, everything is masked. */
  custom?: ((text: string) => string) | undefined
}

/** @internal */
export interface Mask {
  /** @throws whatever `custom` throws. */
  text(text: string): string
  /** @throws whatever `custom` throws. */
  json(json: string): string
  /** Whether masks may change the text. False is certain. */
  touches(json: string): boolean
}

const EMAIL = /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]{1,64}@(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24}/gu
const PHONE = /(?<![\w.])(?:(?:\+|00)[1-9](?:[ \u00a0\u202f()./-]{0,2}\d){6,14}|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?!\d)/g

let checksum: typeof Checksum | undefined

/** @internal Without it, every run of groups is masked whole. */
export async function loadChecksum(): Promise<void> {
  checksum ??= await import('./checksum.ts')
}

/** Fields of an object that name its value, such as a header in a list, and fields that hold this value. */
const NAMING = /^(name|key|header|field|variable)$/i
const NAMED_VALUE = /^(val(ue)?s?|content|data)$/i
/** Maximum levels of nesting. JSON in a text counts as several: each encoding doubles the backslashes. */
const LEVELS_MAX = 400
const ENCODED_LEVELS = 50
/** JSON text with letters in this form must be decoded before it is searched. */
const ESCAPED = '\\u00'

type Rule = (text: string) => string

const replacing =
  (pattern: RegExp, mark: string): Rule =>
  (text) =>
    text.replace(pattern, mark)

/** @internal */
export function createMask(options: MaskingOptions): Mask {
  const { credentials = true, keys = [], patterns = [], custom } = options
  const names = new Set(keys.map(plainName))
  const rules: Rule[] = []
  const maybe: RegExp[] = []
  function add(isOn: boolean | undefined, triggers: readonly RegExp[], rule: Rule): void {
    if (!isOn) return
    rules.push(rule)
    maybe.push(...triggers)
  }
  add(credentials, [MAYBE_NAMED, MAYBE_FORM], (text) =>
    MAYBE_FORM.test(text) || OTHER_FORM.test(text)
      ? CREDENTIAL_FORMS.reduce((masked, form) => masked.replace(form, CREDENTIAL_MARK), text)
      : text,
  )
  add(credentials || names.size > 0, [], (text) => maskAssignments(text, kindOf))
  add(options.cardNumber, [new RegExp(CARD_RUN.source)], (text) =>
    checksum ? checksum.maskNumbers(text, checksum.CARD_NUMBER) : text.replace(CARD_RUN, '[masked:card]'),
  )
  add(options.iban, [/[A-Z]{2}\d{2}/i], (text) =>
    checksum ? checksum.maskNumbers(text, checksum.IBAN) : text.replace(IBAN_RUN, '[masked:iban]'),
  )
  add(options.phone, [/\d{3}|\+\d|\d.{0,2}\d/], replacing(PHONE, '[masked:phone]'))
  // Check for an @ first: searching for the characters before one takes longest.
  add(options.email, [/@/], (text) => (text.includes('@') ? text.replace(EMAIL, '[masked:email]') : text))
  for (const pattern of patterns)
    add(true, [/^/], replacing(new RegExp(pattern, `${pattern.flags.replace(/[gy]/g, '')}g`), '[masked]'))
  if (names.size > 0 || custom) maybe.push(/^/)

  function kindOf(key: string): NameKind {
    if (names.size > 0 && names.has(plainName(key))) return 'secret'
    return credentials ? kindOfName(key) : 'plain'
  }

  function maskText(text: string, level = 0): string {
    // With a function of the host, every text is touched.
    if (!touches(text)) return text
    if (level >= LEVELS_MAX) return ruled(text)
    const whole = maskJsonText(text, level)
    if (whole !== undefined) return whole
    return ruled(replaceJson(text, (json) => maskJsonText(json, level) ?? maskEncoded(json, level)))
  }

  function ruled(text: string): string {
    const masked = applyRules(text)
    return custom ? String(custom(masked)) : masked
  }

  const applyRules: Rule = (text) => rules.reduce((masked, rule) => rule(masked), text)

  /** Undefined unless the text encodes an object, a list, or a text with one of them. */
  function maskJsonText(text: string, level: number): string | undefined {
    if (!/^\s*(?:\{[^]*\}|\[[^]*\]|"[^]*")\s*$/.test(text)) return undefined
    const value = readSafely(() => JSON.parse(text) as Json, undefined)
    if (value === undefined) return undefined
    const masked = JSON.stringify(maskValue(value, level + ENCODED_LEVELS))
    return rewritten(text, JSON.stringify(value), masked)
  }

  /** Masks the inside of a text that encodes JSON: each quote has backslashes. */
  function maskEncoded(text: string, level: number): string | undefined {
    const inside = readSafely(() => JSON.parse(`"${text}"`) as string, undefined)
    if (inside === undefined || inside === text) return undefined
    const masked = maskText(inside, level + ENCODED_LEVELS)
    return masked === inside ? text : JSON.stringify(masked).slice(1, -1)
  }

  /** `kind`: that of the name above the value. */
  function maskValue(value: Json, level: number, kind: NameKind = 'plain'): Json {
    if (value === null || typeof value === 'boolean') return value
    if (kind === 'secret' || level > LEVELS_MAX) return CREDENTIAL_MARK
    if (typeof value === 'string') return kind === 'plain' || isCount(value) ? maskText(value, level) : CREDENTIAL_MARK
    if (typeof value === 'number') return maskNumber(value)
    return Array.isArray(value) ? maskList(value, level + 1, kind) : maskFields(value, level + 1, kind)
  }

  function maskNumber(number: number): Json {
    const text = String(number)
    const masked = touches(text) ? applyRules(text) : text
    return masked === text ? number : masked
  }

  function maskFields(fields: { [key: string]: Json }, level: number, kind: NameKind): Json {
    const entries = Object.entries(fields)
    const isPair = entries.some(([key, item]) => NAMING.test(key) && isSecretName(item))
    return Object.fromEntries(
      entries.map(([key, item]) => {
        // Seals of masked members: they have no content, and their pointers name what was not masked.
        if (key === 'inputSeals' && /^{("[^"]*":"[\da-f]{64}",?)+}$/.test(JSON.stringify(item))) return [key, item]
        // The content of a chat message is not the value of its `name`.
        const isOwnValue =
          isPair && NAMED_VALUE.test(key) && !(key === 'content' && 'role' in fields) ? 'secret' : kindOf(key)
        return [maskText(key, level), maskValue(item, level, isOwnValue === 'plain' ? kind : isOwnValue)]
      }),
    )
  }

  /** Values may follow their names: in a pair, which stands in a list of pairs, and in a flat list of headers. */
  function maskList(list: Json[], level: number, kind: NameKind): Json {
    return list.map((item, index) => {
      const name = list[index - 1]
      if (typeof item === 'string' && isSecretName(name) && HEADER_NAME.test(name)) return CREDENTIAL_MARK
      if (!Array.isArray(item) || item.length !== 2 || !isSecretName(item[0])) return maskValue(item, level, kind)
      return [item[0], maskValue(item[1] as Json, level, 'secret')]
    })
  }

  function isSecretName(name: Json | undefined): name is string {
    return typeof name === 'string' && kindOf(name) === 'secret'
  }

  const touches = (json: string): boolean => json.includes(ESCAPED) || maybe.some((trigger) => trigger.test(json))
  return {
    text: maskText,
    json: (json) => (touches(json) ? JSON.stringify(maskValue(JSON.parse(json) as Json, 0)) : json),
    touches,
  }
}

function plainName(key: string): string {
  return key.replace(/[-_. ]/g, '').toLowerCase()
}
