/** Migrates a store in small steps, and kills itself after some of them: node migrator.ts <file> <steps> */
import { openDatabase } from '../../../src/storage/sqlite/database.ts'
import { knownMigrations, migrating } from '../../../src/storage/sqlite/migrate.ts'

const [, , file = '', steps = '1'] = process.argv
let made = 0
for (const _ of migrating(openDatabase(file), knownMigrations(), 7)) {
  if (++made === Number(steps)) process.kill(process.pid, 'SIGKILL')
}
