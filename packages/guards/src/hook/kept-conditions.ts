/**
 * Caches the policies' checked conditions and compiled patterns across the processes of the hooks. Like the file of
 * policies, the file is signed with the API key, so that no other program can change the result of a condition.
 *
 *   signature (32 bytes) | length of the list | the list | the programs
 *
 * The list is JSON: [source, numbers] of each pattern, [source, tree] of each condition.
 */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { conditionOf, type ConditionStore } from '@tacho/policy/evaluation/condition.ts'
import { isKeepable, keptJson, programsOf, treeOf } from '@tacho/policy/evaluation/kept-condition.ts'
import type { Program } from '@tacho/policy/pattern/program.ts'
import type { Node } from '@tacho/policy/language/syntax.ts'
import type { Account } from '../state.ts'

/** Names the build (scripts/build-program.mjs). Another build may check more, or compile patterns differently. */
declare const TACHO_BUILD: string | undefined
const BUILD = typeof TACHO_BUILD === 'undefined' ? 'sources' : TACHO_BUILD

/** The policies to start with need 160 kB. */
const FILE_BYTES_MAX = 8 * 1_048_576
const SIGNATURE_BYTES = 32
const NUMBER_BYTES = 4

export interface KeptConditions extends ConditionStore {
  /** Writes the conditions that this process used, if one of them is new. */
  save(): void
}

interface Kept {
  readonly trees: ReadonlyMap<string, unknown>
  readonly programs: ReadonlyMap<string, Program>
}

const NOTHING: Kept = { trees: new Map(), programs: new Map() }

interface List {
  readonly patterns: readonly [string, number][]
  readonly conditions: readonly [string, unknown][]
}

export function openKeptConditions(directory: string, { url, apiKey }: Account, build = BUILD): KeptConditions {
  const file = path.join(directory, 'conditions')
  const signatureOf = (content: Uint8Array) =>
    createHmac('sha256', apiKey).update(`conditions\n${url}\n${build}\n`).update(content).digest()
  const keptPrograms = read(file, signatureOf)
  const used = new Map<string, Node>()
  let isNew = false
  return {
    get(source) {
      const tree = keptPrograms.trees.get(source)
      if (tree === undefined) return undefined
      try {
        const root = treeOf(tree, keptPrograms.programs)
        used.set(source, root)
        return conditionOf(source, root)
      } catch {
        return undefined
      }
    },
    add(source, root) {
      if (!isKeepable(root)) return
      used.set(source, root)
      isNew = true
    },
    save() {
      if (!isNew) return
      const content = contentOf(used)
      if (content.length > FILE_BYTES_MAX) return
      try {
        const temporary = `${file}.${randomUUID()}`
        writeFileSync(temporary, Buffer.concat([signatureOf(content), content]), { mode: 0o600, flag: 'wx' })
        renameSync(temporary, file)
      } catch {
        // The next hook checks the conditions again.
      }
    },
  }
}

function contentOf(trees: ReadonlyMap<string, Node>): Buffer {
  const programs = new Map([...trees.values()].flatMap((tree) => [...programsOf(tree)]))
  const patterns = [...programs].map(([source, { length }]) => [source, length])
  const list = Buffer.from(keptJson({ patterns, conditions: [...trees] }))
  const length = Buffer.alloc(NUMBER_BYTES)
  length.writeUInt32LE(list.length)
  const bytes = [...programs.values()].map(({ buffer, byteOffset, byteLength }) =>
    Buffer.from(buffer, byteOffset, byteLength),
  )
  return Buffer.concat([length, list, ...bytes])
}

/** Returns nothing if the file is incomplete or has the signature of another key. */
function read(file: string, signatureOf: (content: Uint8Array) => Buffer): Kept {
  const programs = new Map<string, Program>()
  try {
    const stats = statSync(file)
    if (!stats.isFile() || stats.size > FILE_BYTES_MAX + SIGNATURE_BYTES) return NOTHING
    const bytes = readFileSync(file)
    const content = bytes.subarray(SIGNATURE_BYTES)
    if (!timingSafeEqual(bytes.subarray(0, SIGNATURE_BYTES), signatureOf(content))) return NOTHING
    const listEnd = NUMBER_BYTES + content.readUInt32LE()
    const list = JSON.parse(content.toString('utf8', NUMBER_BYTES, listEnd)) as List
    // Numbers must start at a multiple of their size.
    const numbers = new Int32Array(
      content.buffer.slice(content.byteOffset + listEnd, content.byteOffset + content.length),
    )
    let at = 0
    for (const [source, length] of list.patterns) programs.set(source, numbers.subarray(at, (at += length)))
    return { trees: new Map(list.conditions), programs }
  } catch {
    // The file does not exist yet.
    return NOTHING
  }
}
