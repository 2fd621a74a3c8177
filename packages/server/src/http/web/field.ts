import type { FilterRow, StoredFilter } from '@tacho/contract/web/filter.ts'
import { canonicalNetwork } from '../tenants/allowed-addresses.ts'
import { isStorableText, UNSTORABLE } from '../../domain/web/text.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import { refuse, type Refusal } from './reply-error.ts'

export function refuseField(name: string, message: string): Refusal {
  return refuse('invalid_request', `${name} ${message}`, { errors: [{ path: `/${name}`, message }] })
}

/** Refuses a slash, because people write `workspace/environment`, or an id. */
export function checkTenantName(name: string): void {
  if (name.includes('/')) throw refuseField('name', 'must not contain a slash')
  if (isUuid(name)) throw refuseField('name', 'must not have the form of an id')
}

interface Shape {
  properties?: Record<string, Shape>
  items?: Shape
}

/** Checks only members in the schema, because others are stored nowhere. */
export function checkTexts({ properties = {}, items }: Shape, value: unknown, path = ''): void {
  if (typeof value === 'string' && !isStorableText(value)) throw refuseField(path, UNSTORABLE)
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    const shape = items ?? (Object.hasOwn(properties, name) ? properties[name] : undefined)
    if (shape) checkTexts(shape, member, path === '' ? name : `${path}/${name}`)
  }
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

/** Networks in canonical form, without duplicates. */
export function networksOf(texts: string[] | null | undefined): string[] | null | undefined {
  if (texts === null || texts === undefined) return texts
  const networks = texts.map((text, index) => {
    const network = canonicalNetwork(text)
    if (network !== null) return network
    throw refuseField(
      `allowedAddresses/${index}`,
      'must be an address or a network, such as 192.0.2.0/24 or 2001:db8::/32',
    )
  })
  return [...new Set(networks)]
}

/** The filter of a list in the store's form. Null: no stored row has such a text. */
export function storedFilter<Rows extends Readonly<Record<string, FilterRow>>>(
  filters: Rows,
  query: object,
): StoredFilter<Rows> | null {
  const values = new Map<string, unknown>(Object.entries(query))
  const filter: Record<string, unknown> = {}
  for (const [name, { kind, former = name }] of Object.entries(filters)) {
    const value = values.get(name)
    if (value === undefined) continue
    if (typeof value === 'string' && !isStorableText(value)) return null
    filter[former] ??= kind === 'time' ? timeOf(name, value as string) : value
  }
  return filter as StoredFilter<Rows>
}

export function optionalTimeOf(name: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : timeOf(name, text)
}
