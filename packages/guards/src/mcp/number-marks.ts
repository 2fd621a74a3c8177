/**
 * Preserves numbers that JavaScript cannot represent in a JSON parser that we do not control. Each becomes a string
 * that only this connection can read, and a number again when the message is written.
 */
import { randomUUID } from 'node:crypto'
import { isExactNumber } from './exact-message.ts'

/** A shorter number without an exponent is exact. */
const LONG = /[\d.]{16}|\d[eE]/
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const QUOTE = 0x22
const BACKSLASH = 0x5c

export interface NumberMarks {
  /** @param line JSON or a part of it; no JSON string or number contains a line break. */
  mark(line: string): string
  restore(text: string): string
}

export function createNumberMarks(): NumberMarks {
  // Random, so that a server cannot forge it.
  const name = `number-${randomUUID()}:`
  const marks = new RegExp(`"${name}([^"]+)"`, 'g')
  return {
    mark(line) {
      if (!LONG.test(line)) return line
      const parts: string[] = []
      let from = 0
      for (let at = 0; at < line.length;) {
        const code = line.charCodeAt(at)
        if (code === QUOTE) {
          at = endOfText(line, at)
          continue
        }
        NUMBER.lastIndex = at
        const [source = ''] = NUMBER.exec(line) ?? []
        if (source !== '' && !isExactNumber(source)) {
          parts.push(line.slice(from, at), `"${name}${source}"`)
          from = at + source.length
        }
        at += Math.max(1, source.length)
      }
      return parts.join('') + line.slice(from)
    },
    restore: (text) => (text.includes(name) ? text.replace(marks, '$1') : text),
  }
}

function endOfText(line: string, start: number): number {
  for (let at = start + 1; at < line.length; at++) {
    const code = line.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) return at + 1
  }
  return line.length
}

/** Marks the numbers in a JSON body, or in the data of an event stream, line by line as they arrive. */
export function markLines({ mark }: NumberMarks, isEvents: boolean): TransformStream<Uint8Array, Uint8Array> {
  let parts: Uint8Array[] = []
  const encode = (line: Buffer): Uint8Array => {
    const text = line.toString()
    return isEvents && !text.startsWith('data:') ? line : Buffer.from(mark(text))
  }
  return new TransformStream({
    transform(chunk, controller) {
      let from = 0
      for (let at = 0; at < chunk.length; at++) {
        // A single carriage return ends a line of an event too.
        if (chunk[at] !== 0x0a && chunk[at] !== 0x0d) continue
        parts.push(chunk.subarray(from, at + 1))
        controller.enqueue(encode(Buffer.concat(parts)))
        parts = []
        from = at + 1
      }
      if (from < chunk.length) parts.push(chunk.subarray(from))
    },
    flush(controller) {
      if (parts.length > 0) controller.enqueue(encode(Buffer.concat(parts)))
    },
  })
}
