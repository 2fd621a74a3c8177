/** Files: written whole or not at all, downloaded, and read line by line in bounded memory. */
import { link, open, rm } from 'node:fs/promises'
import path from 'node:path'
import { existsSync, writeFileSync } from 'node:fs'
import { printableJson } from '@tacho/contract/engine/shown-text.ts'
import { failed, Stop } from './stop.ts'
import { unreachable } from './operator-client.ts'

/** Writes a new file completely or not at all; never overwrites one. */

/**
 * Writes and syncs a partial file in the same directory, and links it to its final name when `isWhole` returns.
 * Only the owner can read it.
 */
export async function writeNewFile(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  isWhole: () => Promise<void> | void,
): Promise<void> {
  const partial = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}.partial`)
  try {
    const handle = await open(partial, 'wx', 0o600)
    try {
      for await (const chunk of chunks) await handle.writeFile(chunk)
      await isWhole()
      await handle.sync()
    } finally {
      await handle.close()
    }
    // Unlike a rename, a link never replaces an existing file.
    await link(partial, file)
    await syncDirectory(path.dirname(file))
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (error instanceof Stop || code === undefined) throw error
    throw failed(`${JSON.stringify(file)} ${REASONS[code] ?? `cannot be written (${code})`}.`)
  } finally {
    await rm(partial, { force: true })
  }
}

const REASONS: Record<string, string> = {
  EEXIST: 'already exists and is never overwritten',
  ENOENT: 'cannot be written: its directory does not exist',
  EACCES: 'cannot be written: permission denied',
  ENOSPC: 'cannot be written: the disk is full',
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Writes a streamed reply into a new file, completely or not at all. */

/** Call it before the server does the work. The write itself checks again. */
export function refuseExisting(file: string): void {
  if (existsSync(file)) throw failed(`${JSON.stringify(file)} already exists and is never overwritten.`)
}

/** `ending`: the last bytes of every complete file. `url`: the server's, for errors. Returns the size in bytes. */
export async function download(
  file: string,
  reply: AsyncIterable<Uint8Array>,
  { url, ending, onBytes = () => undefined }: { url: string; ending: string; onBytes?: (bytes: number) => void },
): Promise<number> {
  let bytes = 0
  let last = Buffer.alloc(0)
  const chunks = (async function* () {
    try {
      for await (const chunk of reply) {
        bytes += chunk.length
        last = Buffer.concat([last, chunk]).subarray(-ending.length)
        onBytes(bytes)
        yield chunk
      }
    } catch (error) {
      throw failed(`The connection was lost; the partial file was deleted. ${unreachable(url, error)}`)
    }
  })()
  await writeNewFile(file, chunks, () => {
    if (last.toString() !== ending) throw failed('The file arrived incomplete and was deleted: try again.')
  })
  return bytes
}

/** Splits a byte stream into lines. Holds at most one line, of bounded size. */

export type Line =
  | { number: number; bytes: Buffer }
  /** The line is too long; its content was skipped. */
  | { number: number; tooLong: true }

const NEWLINE = 0x0a
const RETURN = 0x0d

/** Yields lines without their line ends (`\n` or `\r\n`), numbered from 1. The last line may lack a line end. */
export async function* lines(stream: AsyncIterable<Uint8Array>, longest: number): AsyncGenerator<Line> {
  let number = 1
  let parts: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    let start = 0
    while (start < chunk.length) {
      const end = chunk.indexOf(NEWLINE, start)
      const chunkPart = chunk.subarray(start, end === -1 ? chunk.length : end)
      size += chunkPart.length
      if (size <= longest) parts.push(chunkPart)
      else parts = []
      if (end === -1) break
      yield finished(number, parts, size, longest)
      number += 1
      parts = []
      size = 0
      start = end + 1
    }
  }
  if (size > 0) yield finished(number, parts, size, longest)
}

function finished(number: number, parts: Uint8Array[], size: number, longest: number): Line {
  if (size > longest) return { number, tooLong: true }
  const bytes = Buffer.concat(parts)
  return { number, bytes: bytes.at(-1) === RETURN ? bytes.subarray(0, -1) : bytes }
}

/** A result in JUnit XML, which every CI system reads. */
export interface JunitCase {
  name: string
  /** Null: the check passed. */
  failure: string | null
  seconds?: number
}

/** @param group the class name of all cases, by which CI systems group them. */
export function writeJunit(file: string, suite: string, group: string, cases: readonly JunitCase[]): void {
  const failures = cases.filter(({ failure }) => failure !== null).length
  const lines = cases.map(({ name, failure, seconds }) => {
    const time = seconds === undefined ? '' : ` time="${seconds.toFixed(3)}"`
    const inside = failure === null ? '' : `<failure message="${escaped(failure)}"/>`
    return `  <testcase classname="${escaped(group)}" name="${escaped(name)}"${time}>${inside}</testcase>\n`
  })
  const head = `<testsuite name="${escaped(suite)}" tests="${cases.length}" failures="${failures}">`
  writeFileSync(file, `<?xml version="1.0" encoding="UTF-8"?>\n${head}\n${lines.join('')}</testsuite>\n`)
}

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ['\n', '&#10;'],
])

/**
 * Escapes a text for XML. Control characters and half surrogate pairs, which XML does not allow, become visible;
 * direction marks too, as in the console.
 */
function escaped(text: string): string {
  return printableJson(text)
    .replace(/[\r\t]/g, ' ')
    .replace(/[&<>"\n]/g, (one) => ENTITIES.get(one) ?? one)
}
