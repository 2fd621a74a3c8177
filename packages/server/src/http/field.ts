/** Checks request fields beyond what a schema can express. */
import { isStorableText, UNSTORABLE } from '../domain/text.ts'
import { refuse, type Refusal } from './reply-error.ts'

/** The refusal of one field, with its path in the body or query. */
export function refuseField(name: string, message: string): Refusal {
  return refuse('invalid_request', `${name} ${message}`, { errors: [{ path: `/${name}`, message }] })
}

/** Why a name cannot be stored, or null. */
export function nameRefusal(name: string): Refusal | null {
  return textsRefusal({ name })
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The same for the name of a workspace or environment. People write `workspace/environment`, or an id. */
export function tenantNameRefusal(name: string): Refusal | null {
  if (name.includes('/')) return refuseField('name', 'must not contain a slash')
  if (UUID.test(name)) return refuseField('name', 'must not have the form of an id')
  return nameRefusal(name)
}

/** Why one of several texts of a body cannot be stored, or null. Absent texts are fine. */
export function textsRefusal(texts: Record<string, string | null | undefined>): Refusal | null {
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === 'string' && !isStorableText(text)) return refuseField(name, UNSTORABLE)
  }
  return null
}

/** Milliseconds of a valid time; a refusal if it does not exist in milliseconds (a leap second). */
export function timeOf(name: string, text: string): number | Refusal {
  const time = Date.parse(text)
  return Number.isNaN(time)
    ? refuseField(name, 'must be a time with millisecond precision; leap seconds are not supported')
    : time
}
