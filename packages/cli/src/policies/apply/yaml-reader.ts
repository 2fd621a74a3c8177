/** Reads a YAML file with the position of every value, for errors with line and column. */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Node,
  type YAMLMap,
} from 'yaml'
import type { FileFault, Place } from './manifest.ts'

/** One value of the file, with its path: `policies.refunds.severity`. */
export interface Entry {
  path: string
  node: Node | null
  place: Place
}

export class YamlReader {
  readonly faults: FileFault[] = []
  readonly #lines = new LineCounter()
  readonly #document: Document

  constructor(text: string) {
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false })
    for (const { message, pos } of [...this.#document.errors, ...this.#document.warnings]) {
      this.faults.push({ place: this.#placeAt(pos[0]), message })
    }
  }

  get root(): Entry {
    const node = this.#document.contents as Node | null
    return { path: '', node, place: this.#placeAt(node?.range?.[0] ?? 0) }
  }

  fault({ path, place }: Entry, message: string): null {
    this.faults.push({ place, message: path === '' ? message : `${path}: ${message}` })
    return null
  }

  /** The members of a mapping, in order. Adds a fault and returns null for any other value. */
  members(entry: Entry): Map<string, Entry> | null {
    const map = this.#resolved(entry.node)
    if (!isMap(map)) return this.fault(entry, 'must be a mapping')
    const members = new Map<string, Entry>()
    for (const { key, value } of (map as YAMLMap<Node, Node | null>).items) {
      const name = isScalar(key) ? String(key.value) : ''
      const place = this.#placeAt(key.range?.[0] ?? 0)
      const path = entry.path === '' ? name : `${entry.path}.${name}`
      members.set(name, { path, node: value, place })
    }
    return members
  }

  /** The members of an entry. Reports names that are not in `names`. */
  fields<Name extends string>(entry: Entry, names: readonly Name[]): Partial<Record<Name, Entry>> | null {
    const members = this.members(entry)
    if (members === null) return null
    const known = names as readonly string[]
    for (const [name, member] of members) {
      if (!known.includes(name)) this.fault(member, `is not known here; use ${names.join(', ')}`)
    }
    return Object.fromEntries([...members].filter(([name]) => known.includes(name))) as Partial<Record<Name, Entry>>
  }

  /** The items of a list. Adds a fault and returns null for any other value. */
  items(entry: Entry): Entry[] | null {
    const list = this.#resolved(entry.node)
    if (!isSeq(list)) return this.fault(entry, 'must be a list')
    return (list.items as (Node | null)[]).map((node, index) => ({
      path: `${entry.path}[${index}]`,
      node,
      place: this.#placeAt(node?.range?.[0] ?? list.range?.[0] ?? 0),
    }))
  }

  isList(entry: Entry): boolean {
    return isSeq(this.#resolved(entry.node))
  }

  isMapping(entry: Entry): boolean {
    return isMap(this.#resolved(entry.node))
  }

  isMissing(entry: Entry): boolean {
    const node = this.#resolved(entry.node)
    return node === null || (isScalar(node) && node.value === null)
  }

  text(entry: Entry): string | null {
    const value = this.scalar(entry)
    if (typeof value === 'string') return value
    const hint = typeof value === 'number' || typeof value === 'boolean' ? '; write it in quotes' : ''
    return this.fault(entry, `must be text${hint}`)
  }

  /** The value; undefined if the entry is a mapping or a list. */
  scalar(entry: Entry): unknown {
    const node = this.#resolved(entry.node)
    return isScalar(node) ? node.value : undefined
  }

  #resolved(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.#document) ?? null) : node
  }

  #placeAt(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
}
