/** Fields of requests that a schema alone cannot judge. */
import { isStorableText } from '../../domain/text.ts'
import { refuse, type Refusal } from '../reply-error.ts'

/** The refusal of one field, by its place in the body or query. */
export function refuseField(name: string, message: string): Refusal {
  return refuse('invalid_request', `${name} ${message}`, { errors: [{ path: `/${name}`, message }] })
}

/** Why a name cannot be stored, or null. */
export function nameRefusal(name: string): Refusal | null {
  return isStorableText(name) ? null : refuseField('name', 'contains NUL or is not well-formed Unicode')
}

/** Why one of several texts of a body cannot be stored, or null. An absent one can. */
export function textsRefusal(texts: Record<string, string | null | undefined>): Refusal | null {
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === 'string' && !isStorableText(text)) {
      return refuseField(name, 'contains NUL or is not well-formed Unicode')
    }
  }
  return null
}

/** Milliseconds of a time that its schema took, or the refusal of one that has no place on the clock (a leap second). */
export function timeOf(name: string, text: string): number | Refusal {
  const time = Date.parse(text)
  return Number.isNaN(time) ? refuseField(name, 'is not a time that can be told in milliseconds') : time
}
