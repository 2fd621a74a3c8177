/** The data directory, for commands that need the embedded store for themselves. */
import { settingTexts } from '@tacho/server/config/config.ts'
import type { Command } from 'commander'
import { wrongUsage } from '../engine/stop.ts'

export interface DataDirOptions {
  dataDir?: string
}

const [SETTING] = settingTexts().filter(({ name }) => name === 'dataDir')
const DEFAULT = SETTING?.byDefault ?? './data'

export function withDataDir(command: Command): Command {
  return command.option('--data-dir <directory>', `directory of the store (TACHO_DATA_DIR; default ${DEFAULT})`)
}

/** Like `tacho serve`: an empty variable counts as unset. */
export function readDataDir({ dataDir }: DataDirOptions): string {
  if (dataDir === '') throw wrongUsage('--data-dir must not be empty.')
  return dataDir ?? (process.env['TACHO_DATA_DIR'] || DEFAULT)
}
