import type { Command } from 'commander'
import { existsSync } from 'node:fs'
import { readDataDir, withDataDir, type DataDirOptions, countsText, storeAct } from './store.ts'
import { withJson, type OutputOptions } from '../engine/options.ts'
import { printJson, printLine, spokenBytes } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'

interface Options extends DataDirOptions, OutputOptions {
  replace?: true
  unverified?: true
}

export function addRestore(command: Command): void {
  withJson(withDataDir(command))
    .option('--replace', 'move an existing store aside instead of failing')
    .option('--unverified', 'also accept a backup without a checksum, of a build before them')
    .addHelpText(
      'after',
      `
Stop the server that uses the data directory first. The backup is compared with its checksum before anything is replaced. With
--replace the old store stays there under another name.

Examples:
  tacho restore tacho-2026-11-20.db --data-dir /var/lib/tacho
  tacho restore tacho-2026-11-20.db --data-dir ./data --replace`,
    )
    .action(restore)
}

async function restore(file: string, options: Options): Promise<void> {
  const dataDir = readDataDir(options)
  if (!existsSync(file)) throw wrongUsage(`${JSON.stringify(file)} does not exist.`)
  const { replace, unverified } = options
  const { bytes, replaced, sha256, counts } = await storeAct((offline) =>
    offline.restore({ from: file, dataDir, replace: replace === true, unverified: unverified === true }),
  )
  if (options.json) return printJson({ file, dataDir, bytes, replaced, sha256, ...counts })
  printLine(
    `${file} (${spokenBytes(bytes)}) is now the store in ${dataDir}: start the server with \`tacho serve --data-dir ${dataDir}\`.`,
  )
  const verified =
    sha256 === null
      ? 'It was not verified, because the backup has no checksum'
      : 'It matches its checksum and the counts in the backup'
  printLine(`${verified}: ${countsText(counts)}.`)
  if (replaced !== null) printLine(`The old store is now in ${replaced}.`)
}
