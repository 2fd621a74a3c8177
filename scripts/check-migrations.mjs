// Checks that the migrations on main never change: stores made by them exist, and a store refuses a migration that
// differs from the one that made it. `migrations.sha256` has a line for each migration, which is added with it.
//   --add    writes the lines of new migrations, and the schema of this version into its upgrade notes
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { appendFileSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const FOLDER = 'packages/server/src/storage'
const LIST = `${FOLDER}/migrations.sha256`

const released = new Map(
  readFileSync(LIST, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('  '))
    .map(([sha256, file]) => [file, sha256]),
)
const files = globSync('{sqlite,postgres}/migrations/*.sql', { cwd: FOLDER }).sort()
const faults = []
for (const file of new Set([...released.keys(), ...files])) {
  const sha256 = files.includes(file) ? hash('sha256', readFileSync(path.join(FOLDER, file))) : null
  if (sha256 === released.get(file)) continue
  if (released.has(file)) {
    faults.push(`${FOLDER}/${file}: a migration that is on main never changes: restore it, and add the next number`)
  } else if (process.argv.includes('--add')) appendFileSync(LIST, `${sha256}  ${file}\n`)
  else faults.push(`${FOLDER}/${file}: not in ${LIST}: run node scripts/check-migrations.mjs --add`)
}
const numbers = (engine) =>
  files.filter((file) => file.startsWith(engine)).map((file) => path.basename(file, '.sql').slice(0, 3))
const [sqlite, postgres] = ['sqlite', 'postgres'].map(numbers)
if (sqlite.join() !== postgres.join()) {
  faults.push(`${FOLDER}: the engines have different migrations: ${sqlite.join(' ')} and ${postgres.join(' ')}`)
}
for (const numbered of [sqlite, postgres]) {
  for (const [index, number] of numbered.entries()) {
    if (Number(number) !== index + 1) faults.push(`${FOLDER}: migration ${number} should have the number ${index + 1}`)
  }
}
for (const fault of faults) console.error(fault)
if (process.argv.includes('--add'))
  spawnSync(process.execPath, ['scripts/check-upgrades.mjs', '--write'], { stdio: 'inherit' })
process.exitCode = faults.length > 0 ? 1 : 0
