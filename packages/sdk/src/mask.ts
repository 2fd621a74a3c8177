/**
 * Masks credentials and personal data before an event exists.
 *
 * Every pattern runs in linear time: it begins with fixed characters or a bounded class, and nothing that can fail
 * follows an unbounded one. `mask` first searches the whole JSON text for anything it could mask. Most payloads contain
 * nothing of the kind and stay unchanged.
 */
import type { Json } from './json.ts'
import { isCardNumber, isIban } from './checksum.ts'

export interface MaskingOptions {
  /** Values under names such as `password` or `apiKey`, and well-known forms of secrets in texts. Default: true. */
  credentials?: boolean
  /** E-mail addresses. Default: false. */
  email?: boolean
  /** Payment card numbers with a valid checksum (Luhn). Default: false. */
  cardNumber?: boolean
  /** Phone numbers: international ones, and ten digits in groups. Default: false. */
  phone?: boolean
  /** International bank account numbers with a valid checksum. Default: false. */
  iban?: boolean
  /** More names whose values are masked. Case, `-`, `_`, `.` and spaces make no difference. */
  keys?: readonly string[]
  /** More patterns whose matches are masked. They run on whole texts, so keep them linear. */
  patterns?: readonly RegExp[]
  /** Called with each remaining text; returns the text to record. If it throws, everything is masked. */
  custom?: (text: string) => string
}

export interface Mask {
  /** Masks one text. @throws whatever `custom` throws. */
  text(text: string): string
  /** Masks JSON text. @throws whatever `custom` throws. */
  json(json: string): string
  /** Whether this JSON text may contain something to mask. False is certain. */
  touches(json: string): boolean
}

/** Names of secrets. */
const SECRET_NAME =
  /passw|pass[-_. ]?phrase|^pwd$|^jwt$|^otp$|secret|api[-_. ]?key|access[-_. ]?key|private[-_. ]?key|authorization|^auth$|credential|cookie|token$|^cv[vc]$/i

const SECRETS = [
  /-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----END))*/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bsk-[A-Za-z0-9_-]{16,}/g,
  /\b(?:[sr]k_(?:live|test)|whsec|npm|gh[pousr]|github_pat|hf|tacho(?:-[a-z]{1,16})?)_[A-Za-z0-9_]{16,}/g,
  /\b(?:glpat|xox[abeoprs])-[A-Za-z0-9-]{10,}/g,
  /\bAIza[A-Za-z0-9_-]{30,}/g,
  /\bpypi-[A-Za-z0-9_-]{16,}/g,
  // JSON Web Tokens: base64 of `{"`.
  /\beyJ[A-Za-z0-9_.-]{20,}/g,
  /\b(?:Bearer|Basic)\s{1,4}[A-Za-z0-9+/=._~-]{12,}/gi,
  /(?<=:\/\/[^\s/:@]{0,64}:)[^\s/@]{1,256}(?=@)/g,
  // `password=…`, and JSON inside a text. Only the value is masked.
  /(?<=(?:passw(?:or)?d|passphrase|secret|api[-_]?key|access[-_]?key|[a-z]_token|token)["']?\s{0,3}[:=]\s{0,3}["']?)[^\s"'&,;\\]+/gi,
]
/**
 * Find in JSON text whatever the names and patterns above find, and more. There are two because every record call runs
 * them: as one case-insensitive pattern they take twice as long.
 */
const MAYBE_NAMED =
  /pass(?:w|[-_. ]?phrase)|"(?:pwd|jwt|otp|auth|cv[vc])"|secret|(?:api|access|private)[-_. ]?key|authoriz|credential|cookie|token(?!s)|bearer|basic/i
const MAYBE_SECRET =
  /sk-|[sr]k_|whsec_|npm_|gh[pousr]_|github_pat|hf_|tacho[-_]|glpat|xox|AIza|pypi-|eyJ|-----BEGIN|AKIA|ASIA|:\/\/[^/@]*@/

const EMAIL = /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]{1,64}@(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24}/gu
const CARD = /(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)/g
const IBAN = /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b/g
const PHONE = /(?<![\w.])(?:(?:\+|00)[1-9](?:[ ()./-]{0,2}\d){6,14}|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?!\d)/g

interface Rule {
  readonly pattern: RegExp
  /** Discards matches that fail this check. */
  readonly check?: (match: string) => boolean
  readonly mark: string
}

export function createMask(options: MaskingOptions): Mask {
  const { credentials = true, keys = [], patterns = [], custom } = options
  const names = new Set(keys.map(plainName))
  const rules: Rule[] = []
  const maybe: RegExp[] = []
  function add(isOn: boolean, trigger: RegExp, ...added: Rule[]): void {
    if (!isOn) return
    rules.push(...added)
    maybe.push(trigger)
  }
  add(credentials, MAYBE_NAMED, ...SECRETS.map((pattern) => ({ pattern, mark: '[masked:credential]' })))
  add(credentials, MAYBE_SECRET)
  add(options.cardNumber === true, /\d(?:[ -]?\d){12}/, { pattern: CARD, check: isCardNumber, mark: '[masked:card]' })
  add(options.iban === true, /[A-Z]{2}\d{2}/, { pattern: IBAN, check: isIban, mark: '[masked:iban]' })
  add(options.phone === true, /\d{3}|\+\d|\d.{0,2}\d/, { pattern: PHONE, mark: '[masked:phone]' })
  add(options.email === true, /@/, { pattern: EMAIL, mark: '[masked:email]' })
  for (const pattern of patterns) {
    const flags = pattern.flags.replace('y', '')
    const global = new RegExp(pattern.source, flags.includes('g') ? flags : `${flags}g`)
    add(true, /^/, { pattern: global, mark: '[masked]' })
  }
  if (names.size > 0 || custom) maybe.push(/^/)

  function isSecretName(key: string): boolean {
    return (credentials && SECRET_NAME.test(key)) || (names.size > 0 && names.has(plainName(key)))
  }

  function applyRules(text: string): string {
    let masked = text
    for (const { pattern, check, mark } of rules) {
      masked = masked.replace(pattern, (match) => (check && !check(match) ? match : mark))
    }
    return masked
  }

  function maskText(text: string): string {
    return custom ? String(custom(applyRules(text))) : applyRules(text)
  }

  function maskNumber(number: number): Json {
    const text = String(number)
    const masked = applyRules(text)
    return masked === text ? number : masked
  }

  function maskValue(value: Json): Json {
    if (typeof value === 'string') return maskText(value)
    if (typeof value === 'number') return maskNumber(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(maskValue)
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        maskText(key),
        isSecretName(key) && item !== null && typeof item !== 'boolean' ? '[masked:credential]' : maskValue(item),
      ]),
    )
  }

  const touches = (json: string): boolean => maybe.some((trigger) => trigger.test(json))
  const maskJson = (json: string): string =>
    touches(json) ? JSON.stringify(maskValue(JSON.parse(json) as Json)) : json
  return { text: maskText, json: maskJson, touches }
}

function plainName(key: string): string {
  return key.replace(/[-_. ]/g, '').toLowerCase()
}
