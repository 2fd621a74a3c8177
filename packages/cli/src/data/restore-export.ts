import type { Command } from 'commander'
import { statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { answered, Refused, type OperatorClient } from '../engine/operator-client.ts'
import { delayMs } from '../../../sdk/src/delivery/retry.ts'
import { findEnvironment } from '../tenants/tenants.ts'
import { checkedAt, checkedLines, formatOf, readExport, type ExportLine } from './export-file.ts'
import { connect, inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { failed, Stop, wrongUsage } from '../engine/stop.ts'
import { printJson, printLine, spokenNumber } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'

interface Options extends EnvironmentOptions {
  resume?: true
}

/** Size of a request. The server's thread needs a few milliseconds for a request of this size. */
const REQUEST_CHARS = 262_144
/** Maximum number of lines before a mark. An export has far fewer; a file without marks would fill the memory. */
const UNCHECKED_LINES = 10_000
const UNCHECKED_CHARS = 128 * 1_048_576
const REQUEST_LINES = 500
const TRIES = 8

export function addRestoreExport(command: Command): void {
  inEnvironment(command)
    .option('--resume', 'continue an interrupted import of the same file')
    .addHelpText(
      'after',
      `
Writes a file of \`tacho export\` into an empty environment, with its ids and times. Lines are checked by their checksum
before they are sent. What is stored already stays, so repeat an interrupted import with --resume. The operator token
needs the role owner. Files that end with .gz or .zst are decompressed.

Examples:
  tacho restore-export production.jsonl.zst --environment acme/production
  tacho restore-export production.jsonl.zst --environment acme/production --resume
  zcat production.jsonl.gz | tacho restore-export - --environment acme/production`,
    )
    .action(restoreExport)
}

async function restoreExport(file: string, options: Options): Promise<void> {
  const size = file === '-' ? null : sizeOf(file)
  const client = connect(options)
  const { id: environmentId, name } = await findEnvironment(client, options.environment)
  const progress = await startProgress('Import', size)
  const checked = checkedAt(null)
  const done = { written: 0, known: 0 }
  let read = 0
  const place = { environmentId, resume: options.resume === true }
  try {
    const source = readExport(file, formatOf(file), (bytes) => (read += bytes))
    for await (const lines of requestsOf(checkedLines(source, checked))) {
      const { written, known } = await send(client, place, lines)
      place.resume = true
      done.written += written
      done.known += known
      progress.update(read, `${spokenNumber(done.written + done.known)} lines`)
    }
  } catch (error) {
    if (error instanceof Stop) throw error
    const place = checked.line === 0 ? '' : ` after line ${checked.line}`
    throw failed(`${JSON.stringify(file)} cannot be read${place}: ${(error as Error).message}.`)
  } finally {
    progress.end(`Import: ${spokenNumber(done.written + done.known)} lines`)
  }
  if (!checked.isComplete) {
    throw failed('The export is incomplete: its last line is missing. Complete it, and import it again with --resume.')
  }
  if (options.json) printJson({ environment: name, ...done })
  else
    printLine(
      `${spokenNumber(done.written)} lines written into ${name}; ${spokenNumber(done.known)} were already there.`,
    )
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size
  } catch (error) {
    throw wrongUsage(`${JSON.stringify(file)} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/**
 * Makes requests of lines that a mark or the end has verified. Each request begins with the file's first line, and
 * contains the line of a run before its events.
 */
async function* requestsOf(lines: AsyncIterable<ExportLine>): AsyncGenerator<ExportLine[]> {
  let unchecked: ExportLine[] = []
  let uncheckedChars = 0
  let head: ExportLine | null = null
  let run: ExportLine | null = null
  for await (const line of lines) {
    if (line.type !== 'mark' && line.type !== 'end') {
      unchecked.push(line)
      uncheckedChars += line.text.length
      if (unchecked.length > UNCHECKED_LINES || uncheckedChars > UNCHECKED_CHARS) {
        throw failed(`The export is damaged before line ${line.number}: its marks are missing.`)
      }
      continue
    }
    let request: ExportLine[] = []
    let chars = 0
    for (const next of unchecked) {
      if (next.type === 'export') head ??= next
      if (next.type === 'run') run = next
      if (request.length >= REQUEST_LINES || (request.length > 0 && chars + next.text.length > REQUEST_CHARS)) {
        yield request
        request = []
        chars = 0
      }
      if (request.length === 0) {
        if (head !== null && next !== head) request.push(head)
        if (next.type === 'event' && run !== null) request.push(run)
      }
      request.push(next)
      chars += next.text.length
    }
    if (request.length > 0) yield request
    unchecked = []
    uncheckedChars = 0
  }
}

async function send(
  client: OperatorClient,
  { environmentId, resume }: { environmentId: string; resume: boolean },
  lines: ExportLine[],
) {
  const body = { lines: lines.map(({ text }) => text), resume }
  for (let attempt = 0; ; attempt++) {
    const result = await client.whole.importEnvironment({ params: { environmentId }, body })
    if (!result.ok && result.temporary && attempt < TRIES) {
      await wait(delayMs(attempt + 1, result.retryAfterMs ?? undefined, Math.random()))
      continue
    }
    try {
      return answered(client.url, result).value
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      // The service counts lines from the beginning of the request.
      const sentence = error.message.replace(
        /\blines\[(\d+)\]:?/,
        (_, at: string) => `Line ${lines[Number(at)]?.number}:`,
      )
      throw failed(sentence)
    }
  }
}
