import type { Command } from 'commander'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeNewFile } from '../store/new-file.ts'
import { answered } from '../calls/operator-client.ts'
import { asOperator, connect, type ServerOptions } from '../settings/options.ts'
import { printJson, printLine, spokenBytes } from '../terminal/output.ts'
import { startProgress } from '../terminal/progress.ts'
import { unreachable } from '../calls/server-trouble.ts'
import { failed } from '../stop.ts'

export function addBackup(command: Command): void {
  asOperator(command)
    .addHelpText(
      'after',
      `
The server keeps running. The file holds all data, secrets included, and only you can read it. \`tacho restore\` turns it
into a data directory. An existing file is never overwritten.

Examples:
  tacho backup tacho-$(date +%F).db
  tacho backup nightly.db --json`,
    )
    .action(backup)
}

async function backup(file: string, options: ServerOptions): Promise<void> {
  // Fail before the server does the work; the write itself checks again.
  if (existsSync(file)) throw failed(`${JSON.stringify(file)} already exists and is never overwritten.`)
  const client = connect(options)
  // No timeout: the first byte comes only after the server has taken its snapshot.
  const { value, headers } = answered(client.url, await client.whole.createBackup({}, { timeoutMs: Infinity }))
  const expected = contentLength(headers)
  const progress = await startProgress('Backup', expected)
  const hash = createHash('sha256')
  let bytes = 0
  const chunks = (async function* () {
    try {
      for await (const chunk of value) {
        hash.update(chunk)
        bytes += chunk.length
        progress.update(bytes, spokenBytes(bytes))
        yield chunk
      }
    } catch (error) {
      throw failed(
        `The connection was lost during the backup; the partial file was deleted. ${unreachable(client.url, error)}`,
      )
    }
  })()
  try {
    await writeNewFile(file, chunks, () => {
      const digest = `sha-256=:${hash.digest('base64')}:`
      const isWhole = (expected ?? bytes) === bytes && (headers.get('repr-digest') ?? digest) === digest
      if (!isWhole || bytes === 0) throw failed('The backup arrived damaged and was deleted: try again.')
    })
  } finally {
    progress.end(`Backup: ${spokenBytes(bytes)}`)
  }
  if (options.json) printJson({ file, bytes })
  else printLine(`Backup of ${spokenBytes(bytes)} written to ${file}.`)
}

function contentLength(headers: Headers): number | null {
  const text = headers.get('content-length')
  return text === null ? null : Number(text)
}
