/** Splits a stream into lines of bounded length. Reads no further until the consumer asks for more. */
import { Readable } from 'node:stream'

/** Longest line, in bytes. */
export const LINE_BYTES_MAX = 20 * 1_048_576

/** Bytes of a long line's beginning and end that are kept: enough to find the message's id. */
const SAMPLE_BYTES = 1_024

/** A line that is too long or cannot be read. Only its beginning and end are kept. */
export class LongLine {
  readonly start: Buffer
  readonly end: Buffer

  constructor(start: Buffer, end: Buffer) {
    this.start = start
    this.end = end
  }
}

export function endsOf(line: Buffer): LongLine {
  return new LongLine(Buffer.from(line.subarray(0, SAMPLE_BYTES)), tail(line))
}

/** The id of an unreadable message. It is near the beginning or the end. */
export function idIn({ start, end }: LongLine): string | number | null {
  const lineEnd =
    /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")/.exec(start.toString()) ??
    /"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(end.toString())
  return lineEnd?.[1] === undefined ? null : (JSON.parse(lineEnd[1]) as string | number)
}

const NEWLINE = 0x0a

/** The lines without line breaks. Skips empty lines. */
export async function* linesOf(
  stream: Readable,
  maxBytes: number = LINE_BYTES_MAX,
): AsyncGenerator<Buffer | LongLine, void, undefined> {
  let parts: Buffer[] = []
  let bytes = 0
  let long: LongLine | null = null

  function add(bufferPart: Buffer): void {
    bytes += bufferPart.length
    if (long) long = new LongLine(long.start, tail(Buffer.concat([long.end, bufferPart])))
    else if (bytes > maxBytes) {
      const all = Buffer.concat([...parts, bufferPart])
      long = endsOf(all)
      parts = []
    } else if (bufferPart.length > 0) parts.push(bufferPart)
  }

  function take(): Buffer | LongLine {
    const line = long ?? Buffer.concat(parts)
    parts = []
    bytes = 0
    long = null
    return line
  }

  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at))
      from = at + 1
      const line = take()
      if (line instanceof LongLine || line.length > 0) yield line
    }
    add(chunk.subarray(from))
  }
  if (bytes > 0) yield take()
}

/** A copy, so that a chunk of the line is not kept in memory. */
function tail(buffer: Buffer): Buffer {
  return Buffer.from(buffer.subarray(Math.max(0, buffer.length - SAMPLE_BYTES)))
}

/** The same stream without lines that are too long; `refused` is called for each of them. */
export function boundedLines(stream: Readable, maxBytes: number, refused: () => void): Readable {
  async function* keptBuffers(): AsyncGenerator<Buffer> {
    for await (const line of linesOf(stream, maxBytes)) {
      if (line instanceof LongLine) refused()
      else yield Buffer.concat([line, Buffer.of(NEWLINE)])
    }
  }
  return Readable.from(keptBuffers(), { objectMode: false })
}
