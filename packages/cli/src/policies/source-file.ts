/** Reads prompts, conditions and manifests from files. */
import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { wrongUsage } from '../engine/stop.ts'

/** The text, or the end of a sentence with the reason why it cannot be read. */
export type TextRead = { ok: true; text: string } | { ok: false; reason: string }

/** The exact text of a file; `-` is standard input. */
export async function readSource(file: string): Promise<string> {
  const read = file === '-' ? decoded(await buffer(process.stdin)) : readText(file)
  const name = file === '-' ? 'Standard input' : JSON.stringify(file)
  if (!read.ok) throw wrongUsage(`${name} ${read.reason}.`)
  if (read.text === '') throw wrongUsage(`${name} is empty.`)
  return read.text
}

/** A condition from a file, without the final newline that editors add. */
export async function readCondition(file: string): Promise<string> {
  return withoutLastLineEnd(await readSource(file))
}

export function withoutLastLineEnd(source: string): string {
  return source.replace(/\r?\n$/, '')
}

const REASONS: Record<string, string> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a directory',
  EACCES: 'cannot be read: permission denied',
}

export function readText(file: string): TextRead {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    return { ok: false, reason: REASONS[code] ?? `cannot be read (${code})` }
  }
  return decoded(bytes)
}

function decoded(bytes: Buffer): TextRead {
  try {
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { ok: false, reason: 'is not UTF-8' }
  }
}
