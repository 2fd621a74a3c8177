import { UNSTORABLE, unstorableField } from '../domain/text.ts'
import { refuse, type Refusal } from './reply-error.ts'

export function refuseField(name: string, message: string): Refusal {
  return refuse('invalid_request', `${name} ${message}`, { errors: [{ path: `/${name}`, message }] })
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** People write `workspace/environment`, or an id. */
export function checkTenantName(name: string): void {
  if (name.includes('/')) throw refuseField('name', 'must not contain a slash')
  if (UUID.test(name)) throw refuseField('name', 'must not have the form of an id')
  checkTexts({ name })
}

export function checkTexts(texts: Record<string, string | null | undefined>): void {
  const field = unstorableField(texts, Object.keys(texts))
  if (field !== null) throw refuseField(field, UNSTORABLE)
}

export function timeOf(name: string, text: string): number {
  const time = Date.parse(text)
  if (!Number.isNaN(time)) return time
  throw refuseField(name, 'must be a time with millisecond precision; leap seconds are not supported')
}

export function futureTimeOf(name: string, text: string, now: number): number {
  const time = timeOf(name, text)
  if (time > now) return time
  throw refuseField(name, 'must be in the future')
}

export function optionalTimeOf(name: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : timeOf(name, text)
}
