import type { Command } from 'commander'
import { readDatabaseUrl } from './store.ts'
import { withJson, type OutputOptions } from '../engine/options.ts'
import { counted, printJson, printLine } from '../engine/output.ts'
import { failed } from '../engine/stop.ts'

interface Options extends OutputOptions {
  databaseUrl?: string
  citus?: true
}

export function addMigrate(command: Command): void {
  withJson(command)
    .option(
      '--database-url <url>',
      'PostgreSQL database; prefer TACHO_DATABASE_URL, which other users of the machine cannot see',
    )
    .option('--citus', 'also distribute the tables over a Citus cluster')
    .addHelpText(
      'after',
      `
Servers migrate at each start too, but without --citus. You can repeat it, interrupt it, and run it from several machines
at once. The release notes say whether older servers may run meanwhile. The embedded store needs no such step.

Examples:
  TACHO_DATABASE_URL=postgres://tacho:…@db/tacho tacho migrate
  tacho migrate --citus --json`,
    )
    .action(migrate)
}

async function migrate({ databaseUrl, citus, json }: Options): Promise<void> {
  const url = readDatabaseUrl(databaseUrl)
  const { migrateStore, StoreRefused } = await import('@tacho/server/maintenance/copy.ts')
  const done = await migrated()
  if (json) return printJson(done)
  const { database, schema, applied, distributed } = done
  for (const name of applied) printLine(`Applied ${name}`)
  printLine(`The database ${database} has schema ${schema}${applied.length === 0 ? '; nothing to migrate' : ''}.`)
  if (distributed === null) return
  if (distributed.length === 0) printLine('All tenant tables were already distributed.')
  else printLine(`Distributed ${counted(distributed.length, 'table')}: ${distributed.join(', ')}.`)

  async function migrated() {
    try {
      return await migrateStore({ databaseUrl: url, citus: citus === true })
    } catch (error) {
      throw error instanceof StoreRefused ? failed(error.message) : error
    }
  }
}
