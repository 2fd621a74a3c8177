/**
 * Reads the lines of an export from bytes, checks them by their checksum, and writes them to a file. Pure except for
 * the streams.
 */
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib'
import {
  countLine,
  newExportState,
  readLine,
  readMark,
  type ExportState,
} from '@tacho/server/domain/data/export-lines.ts'
import { failed } from '../engine/stop.ts'
import { lines } from '../engine/files.ts'

/** A line may contain a payload in which every character is escaped twice. */
const LONGEST_LINE_MIB = 64

export interface ExportLine {
  number: number
  text: string
  type: string
  /** The position after which to continue; null unless the line is a mark. */
  after: string | null
}

/** What is known of an export so far. */
export interface Checked {
  state: ExportState
  /** Number of the last line read. */
  line: number
  /** Whether the last line was read, so that nothing is missing at the end. */
  isComplete: boolean
}

/** The state at a mark, to check the lines after it. */
export function checkedAt(after: string | null): Checked {
  const mark = after === null ? null : readMark(after)
  const state = mark ? { lines: mark.lines, counts: { ...mark.counts }, sha256: mark.sha256 } : newExportState()
  return { state, line: 0, isComplete: false }
}

/** Throws a Stop at the first line that is damaged. Lines after the last mark are not checked before the end. */
export async function* checkedLines(bytes: AsyncIterable<Uint8Array>, checked: Checked): AsyncGenerator<ExportLine> {
  for await (const line of lines(bytes, LONGEST_LINE_MIB * 1_048_576)) {
    const { number } = line
    if ('tooLong' in line) throw failed(`The export is damaged: line ${number} is longer than ${LONGEST_LINE_MIB} MiB.`)
    const text = line.bytes.toString()
    const read = readLine(text)
    if (checked.isComplete || read === null) throw damaged(number)
    const { type, members } = read
    if (number === 1 && checked.state.lines === 0 && type !== 'export') throw failed('This is not an export of Tacho.')
    if (type === 'mark' || type === 'end') {
      if (members['sha256'] !== checked.state.sha256 || members['lines'] !== checked.state.lines) throw damaged(number)
      checked.isComplete = type === 'end'
    } else countLine(checked.state, type, text)
    checked.line = number
    yield { number, text, type, after: type === 'mark' ? String(members['after']) : null }
  }
}

function damaged(number: number): Error {
  return failed(`The export is damaged before or in line ${number}: its checksum differs.`)
}

type Format = 'plain' | 'gzip' | 'zstd'

export function formatOf(file: string): Format {
  return /\.gz$/i.test(file) ? 'gzip' : /\.zst$/i.test(file) ? 'zstd' : 'plain'
}

/** Reads and decompresses an export. `onBytes` gets the number of bytes read from the file, for progress. */
export function readExport(file: string, format: Format, onBytes: (bytes: number) => void): AsyncIterable<Uint8Array> {
  const source = file === '-' ? process.stdin : createReadStream(file)
  source.on('data', (chunk: Buffer | string) => onBytes(chunk.length))
  source.pause()
  if (format === 'plain') return source
  const decoder = format === 'gzip' ? createGunzip() : createZstdDecompress()
  // Errors of both streams reach the reader of the decoder.
  pipeline(source, decoder).catch(() => undefined)
  return decoder
}

export function encoderOf(format: Format) {
  return format === 'gzip' ? [createGzip()] : format === 'zstd' ? [createZstdCompress()] : []
}
