/**
 * The sentence template of a policy. In `Refund **{amount} {currency}** · {order.id}`, `{…}` is a field of the tool
 * input, and the text between `**` is shown on the buttons. Pure. A template is checked before it is stored, and again
 * before it is used.
 */
import { LIMITS } from '../engine/limits.ts'
import { printable } from '../engine/shown-text.ts'

/** A part of a template. `field`: the path of the field. */
export type TemplatePart = { kind: 'text'; text: string } | { kind: 'field'; field: string } | { kind: 'mark' }

const TOKEN = /\*\*|\{([^{}]*)\}|[{}]|[^*{}]+|\*/g
const FIELD = /^[A-Za-z_$][\w$-]{0,63}(?:\.[\w$-]{1,64}){0,5}$/

/** Parts in order. `**` is a mark: the first begins the text for the buttons, the second ends it. */
export function templateParts(template: string): TemplatePart[] {
  return [...template.matchAll(TOKEN)].map(([text, field]) => {
    if (text === '**') return { kind: 'mark' }
    return field === undefined ? { kind: 'text', text } : { kind: 'field', field }
  })
}

/** Describes the fault of a template in a sentence. Null: it has none. */
export function templateFault(template: string): string | null {
  if (template.trim() === '') return 'it says nothing'
  if (Array.from(template.slice(0, 2 * LIMITS.policyTemplateChars + 2)).length > LIMITS.policyTemplateChars)
    return `it has more than ${LIMITS.policyTemplateChars} characters`
  if (printable(template) !== template)
    return 'it has characters that do not show, such as a line break or a mark of direction'
  const parts = templateParts(template)
  if (parts.some((one) => one.kind === 'text' && /[{}]/.test(one.text)))
    return 'a brace has no other one: write {amount}'
  const fields = parts.flatMap((one) => (one.kind === 'field' ? [one.field] : []))
  const wrong = fields.find((field) => !FIELD.test(field))
  if (wrong !== undefined) return `{${wrong}} is no field of an input: write {amount} or {payment.amount}`
  if (fields.length === 0) return 'it names no field of the input, such as {amount}'
  if (fields.length > LIMITS.policyTemplateFields) return `it has more than ${LIMITS.policyTemplateFields} fields`
  const marks = parts.filter(({ kind }) => kind === 'mark').length
  return marks === 0 || marks === 2 ? null : 'write ** twice, around what the buttons name'
}
