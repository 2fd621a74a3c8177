import type { Command } from 'commander'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeNewFile } from '../engine/files.ts'
import { answered, unreachable } from '../engine/operator-client.ts'
import { asOperator, connect, withJson, type OutputOptions, type ServerOptions } from '../engine/options.ts'
import { countsText, storeAct } from './store.ts'
import { printJson, printLine, spokenBytes } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'
import { failed, wrongUsage } from '../engine/stop.ts'

export function addBackup(command: Command): void {
  addVerify(command.command('verify <file>').description('check a backup against its checksum, without a server'))
  asOperator(command)
    .addHelpText(
      'after',
      `
The server keeps running. The file holds all data, secrets included, and only you can read it. \`tacho restore\` turns it
into a data directory. An existing file is never overwritten. The file ends with a checksum of its content.

Examples:
  tacho backup tacho-$(date +%F).db
  tacho backup nightly.db --json
  tacho backup verify nightly.db`,
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
  const { sha256, counts } = await storeAct((offline) => offline.verify(file))
  if (options.json) return printJson({ file, bytes, sha256, ...counts })
  printLine(`Backup of ${spokenBytes(bytes)} written to ${file}: ${countsText(counts)}.`)
  printLine(`SHA-256 of its content: ${sha256}`)
}

function addVerify(command: Command): void {
  withJson(command)
    .addHelpText(
      'after',
      `
Reads the whole file. The exit code is 1 if one bit of it differs from what the server wrote.

Examples:
  tacho backup verify tacho-2026-11-20.db
  tacho backup verify nightly.db --json`,
    )
    .action(verify)
}

async function verify(file: string, { json }: OutputOptions): Promise<void> {
  if (!existsSync(file)) throw wrongUsage(`${JSON.stringify(file)} does not exist.`)
  const { sha256, counts, storeBytes } = await storeAct((offline) => offline.verify(file))
  if (json) return printJson({ file, ok: true, bytes: storeBytes, sha256, ...counts })
  printLine(`${file} is intact: ${countsText(counts)}.`)
  printLine(`SHA-256 of its content: ${sha256}`)
}

function contentLength(headers: Headers): number | null {
  const text = headers.get('content-length')
  return text === null ? null : Number(text)
}
