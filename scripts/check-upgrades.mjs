// Checks the upgrade notes in docs/operations.md: each version has a section, newest first, that names its schema and
// says what to do.
//   node scripts/check-upgrades.mjs           reports what is missing
//   node scripts/check-upgrades.mjs --write   begins the section of this version, and writes its schema
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './build.mjs'

const PAGE = 'docs/operations.md'
const HEADING = '### Upgrade notes\n'
const SCHEMA = /^Schema (\d+)\.(.*)/

/** The sections below the heading, with version and text. */
function sectionsOf(page) {
  const [, below = ''] = page.split(HEADING)
  const [notes] = below.split(/^#{1,3} /m)
  return notes
    .split(/^#### /m)
    .slice(1)
    .map((text) => {
      const [version, ...lines] = text.split('\n')
      return { version, text: lines.join('\n').trim() }
    })
}

/** @param schema the number of the newest migration */
export function upgradeFaults(page, changelog, version, schema) {
  const released = Array.from(changelog.matchAll(/^## (\d+\.\d+\.\d+)/gm), ([, one]) => one)
  const wanted = [...new Set([version, ...released])]
  const sections = sectionsOf(page)
  const faults = []
  if (sections.map((one) => one.version).join() !== wanted.join()) {
    faults.push(
      `${PAGE}: "Upgrade notes" needs one section for each version, newest first: ${wanted.map((one) => `#### ${one}`).join(', ')}`,
    )
  }
  let newer = Infinity
  for (const { version: noted, text } of sections) {
    const [, number, more = ''] = SCHEMA.exec(text) ?? []
    if (number === undefined) {
      faults.push(
        `${PAGE}: the notes of ${noted} do not begin with "Schema ", the number of its newest migration, and "."`,
      )
      continue
    }
    if (noted === version && Number(number) !== schema) {
      faults.push(`${PAGE}: the notes of ${noted} name schema ${number}, and the newest migration is ${schema}`)
    }
    if (Number(number) > newer)
      faults.push(`${PAGE}: the notes of ${noted} name a newer schema than those of the version after it`)
    newer = Number(number)
    if (more.trim() === '' && text.split('\n').length === 1) {
      faults.push(`${PAGE}: the notes of ${noted} do not say what to do, or that there is nothing to do`)
    }
  }
  return faults
}

/** The page with a section for this version, which names this schema. */
export function withNotes(page, version, schema) {
  const begun = sectionsOf(page).some((one) => one.version === version)
    ? page
    : page.replace(HEADING, `${HEADING}\n#### ${version}\n\nSchema ${schema}. There is nothing to do.\n`)
  return begun.replace(new RegExp(`^(#### ${version.replaceAll('.', '\\.')}\n\nSchema )\\d+`, 'm'), `$1${schema}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const read = (file) => readFileSync(path.join(root, file), 'utf8')
  const { version } = JSON.parse(read('package.json'))
  const schema = readdirSync(path.join(root, 'packages/server/src/storage/sqlite/migrations')).length
  if (process.argv.includes('--write')) writeFileSync(path.join(root, PAGE), withNotes(read(PAGE), version, schema))
  const faults = upgradeFaults(read(PAGE), read('CHANGELOG.md'), version, schema)
  for (const fault of faults) console.error(`${fault}: edit it, or run node scripts/check-upgrades.mjs --write`)
  process.exitCode = faults.length > 0 ? 1 : 0
}
