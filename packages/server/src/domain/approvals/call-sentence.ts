/**
 * Describes a held call in a sentence: `Refund 917 EUR · A-74932 · road bike`. It uses the template of the policy.
 * Without one, it uses the words of the tool and the leading fields: an amount, fields that the condition names, and
 * identifiers. Numbers stay as recorded: nothing is computed, rounded or converted. Pure, and its work is bounded by
 * LEAVES.
 */
import type { SentencePart } from '@tacho/contract/approvals/call-sentence.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { templateFault, templateParts } from '@tacho/contract/policies/call-template.ts'
import { isRecordedNumber } from '@tacho/contract/record/json-text.ts'
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'
import { callInShort, toldCall } from '@tacho/contract/runs/call-text.ts'
import { VERSION_PATTERN } from '@tacho/contract/engine/words.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { PolicyVersionRow } from '../../storage/policies/policies.ts'
import type { Storage } from '../../storage/storage.ts'
import { cut } from '../web/text.ts'

/** Texts of the policy that asked. */
export type AskingTexts = Pick<PolicyVersionRow, 'condition' | 'template'>

const POLICIES = 20

/** Texts of the asking policies, in the order of `rows`. Null: unknown, or too many other policies asked. */
export async function askingTexts(
  storage: Pick<Storage, 'findPolicyVersion' | 'findVersionsInForce'>,
  workspaceId: string,
  rows: readonly Pick<ApprovalRow, 'environmentId' | 'policyId' | 'policyVersion' | 'createdAt'>[],
): Promise<(AskingTexts | null)[]> {
  const known = new Map<string, Promise<AskingTexts | null>>()
  const read = async ({ environmentId, policyId, policyVersion, createdAt }: (typeof rows)[number]) => {
    if (policyId === null) return null
    const number =
      policyVersion !== null && VERSION.test(policyVersion)
        ? Number(policyVersion)
        : (await storage.findVersionsInForce(environmentId, 'policy', policyId, createdAt)).atThatTime
    return number === null ? null : storage.findPolicyVersion(workspaceId, policyId, number)
  }
  const textsOf = (row: (typeof rows)[number]): Promise<AskingTexts | null> => {
    const key = JSON.stringify([row.policyId, row.policyVersion])
    const texts = known.get(key) ?? (known.size < POLICIES ? read(row) : Promise.resolve(null))
    known.set(key, texts)
    return texts
  }
  return Promise.all(rows.map(textsOf))
}

const VERSION = new RegExp(VERSION_PATTERN)

/** A scalar of an input, or an empty object or list. */
export interface InputLeaf {
  /** Keys of objects and indexes of lists. */
  path: readonly string[]
  /** Path of the field, such as `payment.amount` and `items[0].id`. */
  name: string
  value: unknown
}

const LEAVES = 200
const LEVELS = 6
const VALUE_CHARS = 60
const TOOL_CHARS = 60
const DETAILS = 3
const AMOUNTS = 3
const MASKED = /\[masked|\[cut: |\[left out/

export function callSentence(toolName: string, payload: Json | null, asking: AskingTexts | null): SentencePart[] {
  const words: SentencePart = { kind: 'words', text: toolWords(toolName) }
  const input = payload?.['input']
  if (payload === null || input === undefined) return [words]
  const filled = asking?.template && isObject(input) ? filledTemplate(asking.template, input) : null
  if (filled !== null) return filled
  if (toldCall(payload) !== null) return [words, SEPARATOR, value(callInShort(payload, LIMITS.inputInShortChars))]
  const leaves = leavesOf(input)
  const named = fieldsNamed(asking?.condition ?? '')
  const amounts = amountsOf(leaves, named)
  const amount = amountText(amounts, leaves)
  const details = detailsOf(leaves, named, amounts)
  return [
    words,
    ...(amount === null ? [] : [{ kind: 'words', text: ' ' } as const, { kind: 'amount', text: amount } as const]),
    ...details.flatMap((text) => [SEPARATOR, value(text)]),
  ]
}

const SEPARATOR: SentencePart = { kind: 'words', text: ' · ' }
const value = (text: string): SentencePart => ({ kind: 'value', text })

const NAME_WITH_PLACE = /^[\p{L}\p{N}_./: -]*$/u

/**
 * `mcp__shop__refundPayment` → `Refund payment`; the exact name is shown next to the sentence. A text that is no name
 * stays whole.
 */
function toolWords(toolName: string): string {
  const places = NAME_WITH_PLACE.test(toolName) ? toolName.split(/__|[./:]/) : [toolName]
  const last = places.findLast((name) => name.trim() !== '') ?? toolName
  const words = wordsOf(last).join(' ')
  return words === '' ? cut(toolName, TOOL_CHARS) : cut(words.charAt(0).toUpperCase() + words.slice(1), TOOL_CHARS)
}

function wordsOf(name: string): string[] {
  const parts = name.slice(0, 2 * TOOL_CHARS).replaceAll(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
  return parts
    .split(/[\s_-]+/)
    .filter((word) => word !== '')
    .map((word) => (/^\p{Lu}\p{Ll}*$/u.test(word) ? word.toLowerCase() : word))
}

/** Leaves in the order of the input. */
export function leavesOf(input: unknown, most = LEAVES): InputLeaf[] {
  const leaves: InputLeaf[] = []
  const visit = (inner: unknown, path: readonly string[], name: string): void => {
    if (leaves.length >= most) return
    const isList = Array.isArray(inner)
    const members = isList || (isObject(inner) && !isRecordedNumber(inner)) ? Object.entries(inner) : []
    if (members.length === 0 || path.length >= LEVELS) leaves.push({ path, name, value: inner })
    else for (const [key, member] of members) visit(member, [...path, key], memberName(name, key, isList))
  }
  visit(input, [], '')
  return leaves
}

const memberName = (name: string, key: string, isList: boolean): string =>
  isList ? `${name}[${key}]` : name === '' ? key : `${name}.${key}`

/**
 * Cached by condition: compiling takes longer than the rest of the sentence, and a list repeats the same few policies.
 */
const fieldsOfConditions = new Map<string, ReadonlySet<string>>()
const CONDITIONS_KEPT = 100

/** Paths of the input that a condition reads, such as `payment.amount`, and `items[].price` of all elements. */
function fieldsNamed(condition: string): ReadonlySet<string> {
  const known = fieldsOfConditions.get(condition)
  if (known !== undefined) return known
  const compiled = compileCondition(condition)
  const paths = compiled.ok ? fieldsOf(compiled.condition).inputPaths : []
  const names = paths.map((path) =>
    path.reduce<string>((name, key) => memberName(name, String(key ?? ''), typeof key !== 'string'), ''),
  )
  const fields = new Set(names)
  if (fieldsOfConditions.size === CONDITIONS_KEPT) fieldsOfConditions.clear()
  fieldsOfConditions.set(condition, fields)
  return fields
}

const isNamed = ({ name }: InputLeaf, named: ReadonlySet<string>): boolean =>
  named.has(name) || named.has(placeless(name))

const AMOUNT = new Set('amount total sum price cost fee refund charge credit payment fare salary budget'.split(' '))
const CURRENCY = new Set(['currency', 'ccy'])
const CENTS = new Set(['cents', 'cent', 'minor'])
const NUMERIC = /^[-+]?\d[\d.,']{0,30}$/

/**
 * The amounts to show: a field named as one comes before a number that the condition names. Equal ones of a list are
 * all shown.
 */
function amountsOf(leaves: readonly InputLeaf[], named: ReadonlySet<string>): InputLeaf[] {
  const ranked = leaves.flatMap((leaf) => {
    const isAmount = isAmountName(leaf.path)
    const isNumber = isRecordedNumber(leaf.value)
    const isNumeric = typeof leaf.value === 'string' && NUMERIC.test(leaf.value)
    if (!(isNumber && (isAmount || isNamed(leaf, named))) && !(isNumeric && isAmount)) return []
    const rank = (isAmount ? 0 : 100) + (isNamed(leaf, named) ? 0 : 10) + leaf.path.length
    return [{ leaf, rank }]
  })
  const best = Math.min(...ranked.map(({ rank }) => rank))
  const leading = ranked.filter(({ rank }) => rank === best).map(({ leaf }) => leaf)
  const inList = leading.filter((leaf) => placeless(leaf.name) === placeless(leading[0]?.name ?? ''))
  return inList
}

const placeless = (name: string): string => name.replaceAll(/\[\d+\]/g, '[]')

/** Also true of `amount_eur` and `refundAmountCents`, but not of `total_baggages`, which counts something else. */
function isAmountName(path: readonly string[]): boolean {
  const words = keyWords(path)
  const last = words.findLast((word) => !CENTS.has(word) && !isCurrency(word))
  return (
    last !== undefined &&
    (AMOUNT.has(last) || (last === 'value' && AMOUNT.has(keyWords(path.slice(0, -1)).at(-1) ?? '')))
  )
}

/** The words of the last key that is not an index. */
function keyWords(path: readonly string[]): string[] {
  const key = path.findLast((one) => !/^\d+$/.test(one)) ?? ''
  return wordsOf(key).map((word) => word.toLowerCase())
}

const KNOWN = new Set(
  'eur usd gbp chf jpy cad aud nzd sek nok dkk pln czk huf ron bgn try inr cny brl mxn zar'.split(' '),
)
const isCurrency = (word: string): boolean => KNOWN.has(word)

function amountText(amounts: readonly InputLeaf[], leaves: readonly InputLeaf[]): string | null {
  const [first] = amounts
  if (first === undefined) return null
  const unit = unitOf(first, leaves)
  const numbers = amounts.slice(0, AMOUNTS).map(({ value: number }) => numberText(number, unit !== ''))
  const others = amounts.length > AMOUNTS ? ` + ${amounts.length - AMOUNTS} more` : ''
  const label = isAmountName(first.path) ? '' : `${keyWords(first.path).join(' ')} `
  return `${label}${numbers.join(' + ')}${others}${unit === '' ? '' : ` ${unit}`}`
}

/** The currency beside the amount, in its name, or at the top of the input. */
function unitOf(amount: InputLeaf, leaves: readonly InputLeaf[]): string {
  const words = keyWords(amount.path)
  const beside = [amount.path.slice(0, -1), []].map((parent) =>
    leaves.find(({ path, value: code }) => {
      const isBeside = path.length === parent.length + 1 && parent.every((key, at) => path[at] === key)
      return isBeside && CURRENCY.has(keyWords(path).at(-1) ?? '') && /^[A-Za-z]{3}$/.test(String(code))
    }),
  )
  const code = beside.find((leaf) => leaf !== undefined)?.value ?? words.find(isCurrency)
  const currency = typeof code === 'string' ? code.toUpperCase() : ''
  return words.some((word) => CENTS.has(word)) ? `${currency} cents`.trim() : currency
}

/** Formats a recorded number with thousands separators, and money with two decimals: `12,500.50`. */
export function numberText(number: unknown, isMoney = false): string {
  const text = typeof number === 'string' ? number : (JSON.stringify(number) ?? '')
  const plain = /^(-?\d{1,15})(\.\d+)?$/.exec(text)
  if (plain === null) return cut(text, VALUE_CHARS)
  const [, whole = '', decimals = ''] = plain
  const padded = isMoney && decimals.length === 2 ? `${decimals}0` : decimals
  return cut(whole.replaceAll(/\B(?=(\d{3})+$)/g, ',') + padded, VALUE_CHARS)
}

const IDENTIFIER = new Set(
  'id ids no number code reference ref key email to recipient account iban order user name path'.split(' '),
)

/** Fields that the condition names first, then identifiers, then short texts. */
function detailsOf(leaves: readonly InputLeaf[], named: ReadonlySet<string>, amounts: readonly InputLeaf[]): string[] {
  const ranked = leaves.flatMap((leaf) => {
    const { name, path, value: inner } = leaf
    const isFirst = isNamed(leaf, named)
    const words = keyWords(path)
    if (amounts.includes(leaf) || CURRENCY.has(words.at(-1) ?? '')) return []
    if (isFirst && (typeof inner === 'boolean' || isRecordedNumber(inner)))
      return [{ rank: 0, text: `${name} ${JSON.stringify(inner)}` }]
    const isId = IDENTIFIER.has(words.at(-1) ?? '')
    if (isRecordedNumber(inner))
      return isId ? [{ rank: 1, text: `${words.join(' ')} ${cut(JSON.stringify(inner), VALUE_CHARS)}` }] : []
    if (typeof inner !== 'string' || inner.trim() === '' || MASKED.test(inner)) return []
    if (inner.length > VALUE_CHARS && !isFirst) return []
    return [{ rank: isFirst ? 0 : isId || /\d/.test(inner) ? 1 : 2, text: cut(inner, VALUE_CHARS) }]
  })
  return ranked
    .toSorted((one, other) => one.rank - other.rank)
    .slice(0, DETAILS)
    .map(({ text }) => text)
}

/** Null: the template cannot be used, for example if another version of the service stored it. */
function filledTemplate(template: string, input: Json): SentencePart[] | null {
  if (templateFault(template) !== null) return null
  const parts: SentencePart[] = []
  const isMarked = template.includes('**')
  let amount: string | null = null
  for (const one of templateParts(template)) {
    if (one.kind === 'mark') {
      if (amount !== null && amount.trim() !== '') parts.push({ kind: 'amount', text: amount })
      amount = amount === null ? '' : null
      continue
    }
    const text = one.kind === 'text' ? one.text : fieldText(input, one.field)
    if (amount !== null) amount += text
    else if (one.kind === 'text') parts.push({ kind: 'words', text })
    else parts.push({ kind: !isMarked && isAmountName(one.field.split('.')) ? 'amount' : 'value', text })
  }
  return parts
}

function fieldText(input: Json, field: string): string {
  let inner: unknown = input
  for (const key of field.split('.')) {
    if (typeof inner !== 'object' || inner === null || isRecordedNumber(inner) || !Object.hasOwn(inner, key))
      return `(no ${field})`
    inner = (inner as Record<string, unknown>)[key]
  }
  if (isRecordedNumber(inner)) return numberText(inner, isAmountName(field.split('.')))
  return cut(typeof inner === 'string' ? inner : (JSON.stringify(inner) ?? ''), VALUE_CHARS)
}
