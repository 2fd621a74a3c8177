/**
 * The accepted definitions of a server's tools, to detect tools that change or appear after people accepted the server
 * ("rug pull"). There is one file for each user of this machine, Tacho service and server (command line or address), with
 * digests only. It does not depend on the API key, so a new key or environment does not accept other definitions.
 *
 *   no file --first list, whole--> accepted --another digest, another tool--> flagged --accept--> accepted
 *                                      ^----------the accepted digest again------/
 *
 * Only the first connection to a server accepts automatically. A reconnect never does.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { digest } from '../state.ts'
import { isObject, type Json } from './message.ts'

const TOOLS_MAX = 2_000
/** Files of servers that were not used for longer are deleted first. */
const SERVERS_MAX = 200

export type Change = 'description_changed' | 'schema_changed' | 'definition_changed' | 'tool_added'

/** A tool whose definition no person accepted. */
export interface FlaggedTool {
  readonly name: string
  readonly change: Change
  /** Null for a tool that was added. */
  readonly before: string | null
  readonly after: string
}

interface Digests {
  readonly description: string
  readonly schema: string
}

interface Known {
  readonly accepted: Map<string, Digests>
  readonly flagged: Map<string, Digests>
}

export class Definitions {
  readonly #file: string
  readonly #warn: (message: string) => void
  #known: Known
  #readAt: number
  /** True until the first list of the first connection has ended. */
  #isFirst: boolean

  /**
   * @param root the folder of all state.
   * @param url the service's URL. The file's name is a digest of `url` and `server`.
   */
  constructor(root: string, url: string, server: string, warn: (message: string) => void) {
    const folder = path.join(root, 'mcp-tools')
    this.#file = path.join(folder, `${digest(`${url}\n${server}`).slice(0, 32)}.json`)
    this.#warn = warn
    this.#attempt(() => mkdirSync(folder, { recursive: true, mode: 0o700 }))
    this.#readAt = changedAt(this.#file)
    this.#isFirst = this.#readAt === 0
    this.#known = read(this.#file)
  }

  /**
   * Returns the tools of a page that are newly flagged, or flagged with a new digest.
   * @param isLast whether the list ends with this page.
   */
  observe(tools: readonly Json[], isLast: boolean): FlaggedTool[] {
    this.#readAgain()
    const { accepted, flagged } = this.#known
    const flaggedTools: FlaggedTool[] = []
    let isNew = false
    for (const tool of tools) {
      const { name } = tool
      if (typeof name !== 'string') continue
      const now = digestsOf(tool)
      const before = accepted.get(name)
      const seen = flagged.get(name)
      if (before && isSame(before, now)) isNew = flagged.delete(name) || isNew
      else if (!before && this.#isFirst && accepted.size < TOOLS_MAX) isNew = Boolean(accepted.set(name, now))
      else if (!seen || !isSame(seen, now)) {
        if (seen || flagged.size < TOOLS_MAX) isNew = Boolean(flagged.set(name, now))
        flaggedTools.push(flaggedTool(name, before, now))
      }
    }
    if (isNew) this.#store()
    if (isLast) this.#isFirst = false
    return flaggedTools
  }

  /** The entry in `risk.signals` for a tool. */
  signalOf(name: string): 'tool_changed' | 'tool_added' | null {
    this.#readAgain()
    const { accepted, flagged } = this.#known
    if (!flagged.has(name)) return null
    return accepted.has(name) ? 'tool_changed' : 'tool_added'
  }

  /** Accepts flagged definitions: of these tools, or of all. */
  accept(names: readonly string[] = []): FlaggedTool[] {
    this.#readAgain()
    const { accepted, flagged } = this.#known
    const chosen = [...flagged].filter(([name]) => names.length === 0 || names.includes(name))
    const moved = chosen.map(([name, now]) => flaggedTool(name, accepted.get(name), now))
    for (const [name, now] of chosen) {
      accepted.set(name, now)
      flagged.delete(name)
    }
    if (moved.length > 0) this.#store()
    return moved
  }

  /** Reads the file again, because another guard of the same server or a person may have changed it. */
  #readAgain(): void {
    const at = changedAt(this.#file)
    if (at === this.#readAt || at === 0) return
    this.#readAt = at
    this.#known = read(this.#file)
  }

  #store(): void {
    this.#attempt(() => {
      const [tools, flagged] = [this.#known.accepted, this.#known.flagged].map((digests) =>
        [...digests].map(([name, { description, schema }]) => [name, description, schema]),
      )
      const temporary = `${this.#file}.${randomUUID()}`
      writeFileSync(temporary, JSON.stringify({ version: 2, tools, flagged }), { mode: 0o600, flag: 'wx' })
      renameSync(temporary, this.#file)
      this.#readAt = changedAt(this.#file)
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

function flaggedTool(name: string, before: Digests | undefined, now: Digests): FlaggedTool {
  return { name, change: changeOf(before, now), before: before ? wholeOf(before) : null, after: wholeOf(now) }
}

function changeOf(before: Digests | undefined, now: Digests): Change {
  if (!before) return 'tool_added'
  if (before.schema === now.schema) return 'description_changed'
  return before.description === now.description ? 'schema_changed' : 'definition_changed'
}

function isSame(one: Digests, other: Digests): boolean {
  return one.description === other.description && one.schema === other.schema
}

function wholeOf({ description, schema }: Digests): string {
  return digest(description + schema)
}

/** Covers everything of a tool that a model or a person reads, and the schema of its input. */
function digestsOf({ title, description, annotations, inputSchema, outputSchema }: Json): Digests {
  return {
    description: digest(ordered([title, description, annotations])),
    schema: digest(ordered([inputSchema, outputSchema])),
  }
}

/** JSON text that does not depend on the order of keys. */
function ordered(value: unknown): string {
  return JSON.stringify(value, (_, innerValue: unknown) =>
    isObject(innerValue) && !JSON.isRawJSON(innerValue)
      ? Object.fromEntries(Object.entries(innerValue).sort(([a], [b]) => (a < b ? -1 : 1)))
      : innerValue,
  )
}

/** 0 if there is no file. */
function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** Empty if there is no usable file. */
function read(file: string): Known {
  try {
    const { tools, flagged } = JSON.parse(readFileSync(file, 'utf8')) as { tools?: unknown; flagged?: unknown }
    return { accepted: digestsIn(tools), flagged: digestsIn(flagged) }
  } catch {
    return { accepted: new Map(), flagged: new Map() }
  }
}

function digestsIn(entries: unknown): Map<string, Digests> {
  return new Map(
    (Array.isArray(entries) ? entries.slice(0, TOOLS_MAX) : [])
      .filter((entry): entry is [string, string, string] => Array.isArray(entry) && entry.every(isText))
      .map(([name, description, schema]) => [name, { description, schema }]),
  )
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
