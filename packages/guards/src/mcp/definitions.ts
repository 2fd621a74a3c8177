/**
 * Remembers the definitions of a server's tools, to notice when one changes after people accepted it ("rug pull"). The
 * file holds digests only, and belongs to one server: one command line or address.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { digest } from '../state.ts'
import { isObject, type Json } from './message.ts'

const TOOLS_MAX = 2_000
/** Files of servers that were not used for longer are deleted first. */
const SERVERS_MAX = 200

type Change = 'description_changed' | 'schema_changed' | 'definition_changed'

export interface ChangedTool {
  readonly name: string
  readonly change: Change
  readonly before: string
  readonly after: string
}

interface Digests {
  readonly description: string
  readonly schema: string
}

export class Definitions {
  readonly #file: string
  readonly #seen: Map<string, Digests>
  readonly #warn: (message: string) => void

  /** @param server names the server; only its digest is stored. */
  constructor(directory: string, server: string, warn: (message: string) => void) {
    const folder = path.join(directory, 'mcp-tools')
    this.#file = path.join(folder, `${digest(server).slice(0, 32)}.json`)
    this.#warn = warn
    this.#attempt(() => mkdirSync(folder, { recursive: true, mode: 0o700 }))
    this.#seen = read(this.#file)
  }

  /** The tools whose definition differs from the last one seen. Stores the new ones. */
  observe(tools: readonly Json[]): ChangedTool[] {
    const changed: ChangedTool[] = []
    let isNew = false
    for (const tool of tools) {
      const { name } = tool
      if (typeof name !== 'string') continue
      const now = digestsOf(tool)
      const known = this.#seen.get(name)
      const change = known && changeOf(known, now)
      if (known && !change) continue
      // A server that lists more is still guarded; only its further tools are not watched.
      if (!known && this.#seen.size >= TOOLS_MAX) continue
      this.#seen.set(name, now)
      isNew = true
      if (known && change) changed.push({ name, change, before: wholeOf(known), after: wholeOf(now) })
    }
    if (isNew) this.#store()
    return changed
  }

  #store(): void {
    this.#attempt(() => {
      const tools = [...this.#seen].map(([name, { description, schema }]) => [name, description, schema])
      const temporary = `${this.#file}.${randomUUID()}`
      writeFileSync(temporary, JSON.stringify({ version: 1, tools }), { mode: 0o600, flag: 'wx' })
      renameSync(temporary, this.#file)
      deleteOldest(path.dirname(this.#file))
    })
  }

  #attempt(act: () => void): void {
    try {
      act()
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      this.#warn(`The definitions of tools cannot be stored (${code ?? 'unknown'}): a change may go unnoticed.`)
    }
  }
}

function changeOf(known: Digests, now: Digests): Change | undefined {
  const isDescription = known.description !== now.description
  const isSchema = known.schema !== now.schema
  if (isDescription && isSchema) return 'definition_changed'
  if (isDescription) return 'description_changed'
  return isSchema ? 'schema_changed' : undefined
}

function wholeOf({ description, schema }: Digests): string {
  return digest(description + schema)
}

/** Everything that a model or a person reads of a tool, and everything that its input must match. */
function digestsOf({ title, description, annotations, inputSchema, outputSchema }: Json): Digests {
  return {
    description: digest(ordered([title, description, annotations])),
    schema: digest(ordered([inputSchema, outputSchema])),
  }
}

/** JSON text that is the same for any order of keys. */
function ordered(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
}

/** Empty if there is no usable file: then every tool is new. */
function read(file: string): Map<string, Digests> {
  try {
    const { tools } = JSON.parse(readFileSync(file, 'utf8')) as { tools?: unknown }
    const entries = Array.isArray(tools) ? tools.slice(0, TOOLS_MAX) : []
    return new Map(
      entries
        .filter((entry): entry is [string, string, string] => Array.isArray(entry) && entry.every(isText))
        .map(([name, description, schema]) => [name, { description, schema }]),
    )
  } catch {
    return new Map()
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function deleteOldest(folder: string): void {
  const names = readdirSync(folder)
  if (names.length <= SERVERS_MAX) return
  const byAge = names
    .map((name) => path.join(folder, name))
    .map((file) => ({ file, at: statSync(file).mtimeMs }))
    .sort((a, b) => b.at - a.at)
  for (const { file } of byAge.slice(SERVERS_MAX)) rmSync(file, { force: true })
}
