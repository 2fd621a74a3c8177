import { isIP } from 'node:net'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'
import { isStorableText, parsedJson } from '../domain/web/text.ts'
import type { GrantedRole, GroupRoles } from '../domain/people/identity.ts'

export interface Setting<Value> {
  placeholder: string
  help: string
  byDefault: string | null
  parse: (text: string) => Parsed<Value>
  /** A secret has no flag and is never shown: other users can read the arguments of a process. */
  secret?: boolean
  /** The value can also come from a file that TACHO_…_FILE names, for container secrets. */
  fromFile?: boolean
}

type Parsed<Value> = { value: Value } | { mustBe: string }

interface About {
  placeholder: string
  help: string
  byDefault: string
  fromFile?: true
}

const UNITS = {
  bytes: { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 },
  duration: { ms: 1, s: 1000, m: 60_000, h: 3_600_000 },
} as const

const NAMED_NETWORKS = ['loopback', 'linklocal', 'uniquelocal']

export function text(about: About, maxChars: number): Setting<string> {
  const mustBe = `a text of 1 to ${maxChars} characters`
  return {
    ...about,
    parse: (settingText) =>
      settingText.length > 0 && settingText.length <= maxChars ? { value: settingText } : { mustBe },
  }
}

export function optionalText(about: Omit<About, 'byDefault'>, maxChars: number): Setting<string | null> {
  return { ...text({ ...about, byDefault: '' }, maxChars), byDefault: null }
}

interface Range<Bound> {
  help: string
  byDefault: string
  from: Bound
  to: Bound
}

export function integer({ from, to, ...about }: Range<number>, placeholder = 'number'): Setting<number> {
  return {
    ...about,
    placeholder,
    parse(settingText) {
      const value = /^[0-9]{1,15}$/.test(settingText) ? Number(settingText) : Number.NaN
      return value >= from && value <= to ? { value } : { mustBe: `a whole number from ${from} to ${to}` }
    },
  }
}

export const bytes = (range: Range<string>): Setting<number> => quantity(range, 'bytes')
/** A setting in milliseconds. */
export const duration = (range: Range<string>): Setting<number> => quantity(range, 'duration')

function quantity({ from, to, ...about }: Range<string>, kind: keyof typeof UNITS): Setting<number> {
  const mustBe = `from ${from} to ${to}, with a unit (${Object.keys(UNITS[kind]).join(', ')})`
  const [least, most] = [inSmallestUnit(kind, from), inSmallestUnit(kind, to)]
  return {
    ...about,
    placeholder: kind,
    parse(settingText) {
      const value = inSmallestUnit(kind, settingText)
      return value >= least && value <= most ? { value } : { mustBe }
    },
  }
}

export function choice<const Value extends string>(
  about: Omit<About, 'placeholder'>,
  values: readonly Value[],
): Setting<Value> {
  return {
    ...about,
    placeholder: values.join('|'),
    parse(settingText) {
      const value = values.find((known) => known === settingText)
      return value === undefined ? { mustBe: `one of ${values.join(', ')}` } : { value }
    },
  }
}

export function onOff(help: string): Setting<boolean> {
  return {
    help,
    byDefault: 'on',
    placeholder: 'on|off',
    parse: (settingText) =>
      settingText === 'on' || settingText === 'off' ? { value: settingText === 'on' } : { mustBe: 'on or off' },
  }
}

export function networks(help: string): Setting<string[]> {
  return {
    help,
    byDefault: 'none',
    placeholder: 'networks',
    parse(settingText) {
      const value = settingText === 'none' ? [] : settingText.split(',').map((listItem) => listItem.trim())
      if (value.every(isNetwork)) return { value }
      return { mustBe: `IP addresses, networks such as 10.0.0.0/8, ${NAMED_NETWORKS.join(', ')}, or none` }
    },
  }
}

/** `mustBe` must not repeat the given value. */
export function secretText(
  about: Pick<About, 'placeholder' | 'help'>,
  isValid: (text: string) => boolean,
  mustBe: string,
): Setting<string | null> {
  return {
    ...about,
    byDefault: null,
    secret: true,
    fromFile: true,
    parse: (settingText) => (isValid(settingText) ? { value: settingText } : { mustBe }),
  }
}

export function optional(
  about: Omit<About, 'byDefault'>,
  read: (text: string) => string | null,
  mustBe: string,
): Setting<string | null> {
  return {
    ...about,
    byDefault: null,
    parse(settingText) {
      const value = read(settingText)
      return value === null ? { mustBe } : { value }
    },
  }
}

export const webAddress = (help: string): Setting<string | null> =>
  optional({ placeholder: 'address', help }, readWebAddress, 'an http or https address without a query')

function readWebAddress(addressText: string): string | null {
  const url = URL.parse(addressText)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return null
  return url.search === '' && url.hash === '' ? url.origin + url.pathname.replace(/\/+$/, '') : null
}

function inSmallestUnit(kind: keyof typeof UNITS, amountText: string): number {
  const [, digits, unit] = /^([0-9]{1,15})([A-Za-z]+)$/.exec(amountText) ?? []
  const factor = Object.entries(UNITS[kind]).find(([name]) => name.toLowerCase() === unit?.toLowerCase())?.[1]
  return factor === undefined ? Number.NaN : Number(digits) * factor
}

function isNetwork(networkText: string): boolean {
  if (NAMED_NETWORKS.includes(networkText)) return true
  const [address = '', prefix, ...more] = networkText.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  return prefix === undefined || (/^[0-9]{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128))
}

const EVERYWHERE = '*'

/** `{ "group": { "workspace": "role", "*": "role" } }` */
export function groupRoles(help: string): Setting<GroupRoles | null> {
  const mustBe = `a JSON object of at most ${LIMITS.mappedGroups} groups, such as {"acme-admins":{"acme":"admin"},"all-staff":{"*":"viewer"}}; roles are ${ROLES.join(', ')}`
  return {
    placeholder: 'json',
    help,
    byDefault: null,
    fromFile: true,
    parse(settingText) {
      const value = readGroupRoles(settingText)
      return value === null ? { mustBe } : { value }
    },
  }
}

function readGroupRoles(rolesText: string): GroupRoles | null {
  const groups = membersOf(parsedJson(rolesText))
  if (groups === null || groups.length === 0 || groups.length > LIMITS.mappedGroups) return null
  const read = new Map<string, GrantedRole[]>()
  for (const [group, members] of groups) {
    const roles = membersOf(members)?.map(([workspace, role]) => ({
      workspace: workspace === EVERYWHERE ? null : workspace,
      role: ROLES.find((known) => known === role),
    }))
    if (roles === undefined || roles.length === 0) return null
    if (roles.some(({ workspace, role }) => role === undefined || !isName(workspace ?? EVERYWHERE))) return null
    read.set(group, roles as GrantedRole[])
  }
  return read
}

const isName = (text: string): boolean =>
  isStorableText(text) && text !== '' && Array.from(text).length <= LIMITS.nameChars

function membersOf(value: unknown): [string, unknown][] | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : null
}
