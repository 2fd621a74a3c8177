/** Where the embedded store lies, for the commands that act on it while no server has it open. */
import { settingTexts } from '@tacho/server/config/config.ts'
import type { Command } from 'commander'
import { wrongUsage } from './stop.ts'

export interface DataDirOptions {
  dataDir?: string
}

const [SETTING] = settingTexts().filter(({ name }) => name === 'dataDir')
const DEFAULT = SETTING?.byDefault ?? './data'

export function withDataDir(command: Command): Command {
  return command.option('--data-dir <directory>', `where the store lies (TACHO_DATA_DIR; default ${DEFAULT})`)
}

/** As `tacho serve` finds it: an empty variable is one that is not set. */
export function readDataDir({ dataDir }: DataDirOptions): string {
  if (dataDir === '') throw wrongUsage('--data-dir must not be empty.')
  return dataDir ?? (process.env['TACHO_DATA_DIR'] || DEFAULT)
}
