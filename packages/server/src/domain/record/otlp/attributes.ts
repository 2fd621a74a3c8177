/** Each convention takes the attributes it knows; the rest stays in the payload. */
import { shortenedText } from '@tacho/contract/engine/shown-text.ts'
import { attempt } from '../../web/text.ts'
import type { AnyValue, KeyValue } from './otlp_pb.ts'

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
export type JsonObject = { [name: string]: Json }

/** Deeper JSON texts stay texts: protobuf allows 100 levels, and a payload can have 200. */
const LEVELS_MAX = 64
/** Conventions flatten lists into names such as `llm.input_messages.0.message.role`. */
const LIST_ITEMS_MAX = 10_000

/** Maximum number of attributes that are read. OpenTelemetry's own limit is 128, unless a client sets another. */
const ATTRIBUTES_MAX = 1_000

export class Attributes {
  readonly #left: Map<string, Json>
  readonly dropped: number

  constructor(pairs: readonly KeyValue[]) {
    const firstPairs = pairs.slice(0, ATTRIBUTES_MAX)
    this.#left = new Map(firstPairs.map(({ key, value }) => [key, plainValue(value)]))
    this.dropped = pairs.length - firstPairs.length
  }

  peek(...names: string[]): Json | undefined {
    for (const name of names) {
      const value = this.#left.get(name)
      if (value !== undefined && value !== null && value !== '') return value
    }
    return undefined
  }

  /** Takes the first of these attributes, and the others with the same value: exporters often send several conventions. */
  take(...names: string[]): Json | undefined {
    const peekedValue = this.peek(...names)
    if (peekedValue !== undefined)
      for (const name of names) if (this.#left.get(name) === peekedValue) this.#left.delete(name)
    return peekedValue
  }

  text(...names: string[]): string | undefined {
    return textOf(this.peek(...names))
  }

  takeText(...names: string[]): string | undefined {
    return this.text(...names) === undefined ? undefined : textOf(this.take(...names))
  }

  namesUnder(prefix: string): string[] {
    return [...this.#left.keys()].filter((name) => name.startsWith(prefix))
  }

  peekJson(name: string): Json | undefined {
    const peekedValue = this.peek(name)
    return peekedValue === undefined ? undefined : parsed(peekedValue)
  }

  takeJson(...names: string[]): Json | undefined {
    const peekedValue = this.take(...names)
    return peekedValue === undefined ? undefined : parsed(peekedValue)
  }

  /** Takes all names that start with `prefix` and a dot. Numbers in them are positions in lists. */
  takeTree(prefix: string): Json | undefined {
    const start = `${prefix}.`
    let root: Branch | undefined
    for (const [name, value] of this.#left) {
      if (!name.startsWith(start)) continue
      root ??= new Map()
      if (place(root, name.slice(start.length).split('.'), value)) this.#left.delete(name)
    }
    return root === undefined || root.size === 0 ? undefined : grown(root)
  }

  rest(): JsonObject | undefined {
    return this.#left.size === 0 ? undefined : Object.fromEntries(this.#left)
  }

  takeRest(): JsonObject {
    const otherAttributes = Object.fromEntries(this.#left)
    this.#left.clear()
    return otherAttributes
  }
}

type Branch = Map<string, Branch | { leaf: Json }>

function place(root: Branch, path: string[], value: Json): boolean {
  if (path.length > LEVELS_MAX) return false
  const last = path.pop() ?? ''
  let branch = root
  for (const step of path) {
    const next = branch.get(step) ?? new Map()
    if (!(next instanceof Map)) return false
    branch.set(step, next)
    branch = next
  }
  if (branch.has(last)) return false
  branch.set(last, { leaf: value })
  return true
}

function grown(branch: Branch): Json {
  const entries = [...branch].map(([name, next]): [string, Json] => [
    name,
    next instanceof Map ? grown(next) : next.leaf,
  ])
  const isList = entries.every(([name]) => /^\d{1,5}$/.test(name) && Number(name) < LIST_ITEMS_MAX)
  if (!isList) return Object.fromEntries(entries)
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, value]) => value)
}

export function plainValue(anyValue: AnyValue | undefined): Json {
  const value = anyValue?.value
  switch (value?.case) {
    case 'stringValue':
    case 'boolValue':
      return value.value
    case 'intValue': {
      const number = Number(value.value)
      return Number.isSafeInteger(number) ? number : String(value.value)
    }
    case 'doubleValue':
      return Number.isFinite(value.value) ? value.value : String(value.value)
    case 'bytesValue':
      return Buffer.from(value.value).toString('base64')
    case 'arrayValue':
      return value.value.values.map(plainValue)
    case 'kvlistValue':
      return Object.fromEntries(value.value.values.map((pair) => [pair.key, plainValue(pair.value)]))
    default:
      return null
  }
}

export function parsed(value: Json): Json {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value) || levelsOf(value) > LEVELS_MAX) return value
  return attempt(() => JSON.parse(value) as Json) ?? value
}

/** An upper bound: brackets inside strings count too. */
function levelsOf(text: string): number {
  let [level, most] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at) | 0x20
    // Tests for `[` and `{`, then for `]` and `}`: each pair differs in one bit.
    if (code === 0x7b) most = Math.max(most, ++level)
    else if (code === 0x7d) level--
  }
  return most
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function set(members: { [name: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(members).filter((entry): entry is [string, Json] => entry[1] !== undefined))
}

/** A span or log record that cannot become an event. It names itself and the reason, in the reply and in `tacho doctor`. */

export class Unreadable {
  readonly runId: string
  readonly id: string
  readonly name: string
  readonly reason: string

  constructor(names: { traceId?: unknown; spanId?: unknown; name?: unknown }, reason: string) {
    this.runId = shownName(names.traceId)
    this.id = shownName(names.spanId)
    this.name = shownName(names.name)
    this.reason = reason
  }
}

const NAME_CHARS = 80

const shownName = (value: unknown) => (typeof value === 'string' ? shortenedText(value, NAME_CHARS) : '')

/** protobuf's messages quote the value, which may be long or secret, so only the field is reported. */
export function unreadable(names: Record<string, unknown>, error: unknown): Unreadable {
  const message = error instanceof Error ? error.message : ''
  const field = /\bfield tacho\.otlp\.[\w.]*?\.(\w+)/.exec(message)?.[1]
  if (field !== undefined) return new Unreadable(names, `its ${field} cannot be read`)
  return new Unreadable(names, message.startsWith('its ') ? message : 'it cannot be decoded')
}
