/**
 * The compiled patterns of the policies, over the processes of the hooks. The file is signed with the API key, as the file of
 * policies is: another program must not be able to change what a pattern finds.
 *
 *   signature (32 bytes) | length of the list | the list: source and size of each pattern, as JSON | the programs
 */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { PatternStore } from '@tacho/policy/pattern.ts'
import { COMPILER, type Program } from '@tacho/policy/program.ts'
import type { Account } from '../state.ts'

/** The policies to start with need 130 kB. */
const FILE_BYTES_MAX = 8 * 1_048_576
const SIGNATURE_BYTES = 32
const NUMBER_BYTES = 4

export interface KeptPatterns extends PatternStore {
  /** Writes the patterns that this process used, if one of them is new. */
  save(): void
}

export function openKeptPatterns(directory: string, { url, apiKey }: Account): KeptPatterns {
  const file = path.join(directory, 'patterns')
  const signatureOf = (content: Uint8Array) =>
    createHmac('sha256', apiKey).update(`patterns\n${url}\n${COMPILER}\n`).update(content).digest()
  const kept = read(file, signatureOf)
  const used = new Map<string, Program>()
  let isNew = false
  return {
    get(source) {
      const program = kept.get(source)
      if (program) used.set(source, program)
      return program
    },
    add(source, program) {
      used.set(source, program)
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
        // The next hook compiles them again.
      }
    },
  }
}

function contentOf(programs: ReadonlyMap<string, Program>): Buffer {
  const list = Buffer.from(JSON.stringify([...programs].map(([source, { length }]) => [source, length])))
  const length = Buffer.alloc(NUMBER_BYTES)
  length.writeUInt32LE(list.length)
  const bytes = [...programs.values()].map(({ buffer, byteOffset, byteLength }) =>
    Buffer.from(buffer, byteOffset, byteLength),
  )
  return Buffer.concat([length, list, ...bytes])
}

/** Nothing, if it is not whole or another's. */
function read(file: string, signatureOf: (content: Uint8Array) => Buffer): ReadonlyMap<string, Program> {
  const programs = new Map<string, Program>()
  try {
    const stats = statSync(file)
    if (!stats.isFile() || stats.size > FILE_BYTES_MAX + SIGNATURE_BYTES) return programs
    const bytes = readFileSync(file)
    const content = bytes.subarray(SIGNATURE_BYTES)
    if (!timingSafeEqual(bytes.subarray(0, SIGNATURE_BYTES), signatureOf(content))) return programs
    const listEnd = NUMBER_BYTES + content.readUInt32LE()
    const list = JSON.parse(content.toString('utf8', NUMBER_BYTES, listEnd)) as [string, number][]
    // Numbers must begin at a multiple of their size.
    const numbers = new Int32Array(Uint8Array.from(content.subarray(listEnd)).buffer)
    let at = 0
    for (const [source, length] of list) programs.set(source, numbers.subarray(at, (at += length)))
  } catch {
    // No file yet.
  }
  return programs
}
