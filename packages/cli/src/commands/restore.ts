import type { Command } from 'commander'
import { existsSync } from 'node:fs'
import { readDataDir, withDataDir, type DataDirOptions } from '../store/data-dir.ts'
import { withJson, type OutputOptions } from '../settings/options.ts'
import { printJson, printLine, spokenBytes } from '../terminal/output.ts'
import { wrongUsage } from '../stop.ts'
import { storeAct } from '../store/store-act.ts'

interface Options extends DataDirOptions, OutputOptions {
  replace?: true
}

export function addRestore(command: Command): void {
  withJson(withDataDir(command))
    .option('--replace', 'move an existing store aside instead of failing')
    .addHelpText(
      'after',
      `
Stop the server that uses the data directory first. With --replace the old store stays there under another name.

Examples:
  tacho restore tacho-2026-11-20.db --data-dir /var/lib/tacho
  tacho restore tacho-2026-11-20.db --data-dir ./data --replace`,
    )
    .action(restore)
}

async function restore(file: string, options: Options): Promise<void> {
  const dataDir = readDataDir(options)
  if (!existsSync(file)) throw wrongUsage(`${JSON.stringify(file)} does not exist.`)
  const { bytes, replaced } = await storeAct((offline) =>
    offline.restore({ from: file, dataDir, replace: options.replace === true }),
  )
  if (options.json) return printJson({ file, dataDir, bytes, replaced })
  printLine(
    `${file} (${spokenBytes(bytes)}) is now the store in ${dataDir}: start the server with \`tacho serve --data-dir ${dataDir}\`.`,
  )
  if (replaced !== null) printLine(`The old store is now in ${replaced}.`)
}
