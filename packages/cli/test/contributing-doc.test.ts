/** Keeps the places that CONTRIBUTING.md, docs/architecture.md and the decision records name correct. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const TEXT = readFileSync(path.join(ROOT, 'CONTRIBUTING.md'), 'utf8')

/** Finds the file that the text names. The name can be relative to `packages/server/src`. Null if there is no such file. */
function fileOf(name: string): string | null {
  const places = [path.join(ROOT, name), path.join(ROOT, 'packages/server/src', name)]
  return places.find((place) => existsSync(place)) ?? null
}

test('every path in the guide exists', () => {
  const names = [...TEXT.matchAll(/`([\w./-]+)`/g)].map(([, name = '']) => name)
  const paths = names.filter((name) => /\w\/\w/.test(name))
  assert.ok(paths.length > 25)
  assert.deepEqual(
    paths.filter((name) => fileOf(name) === null),
    [],
  )
})

test('every name that the guide places in a file is in that file', () => {
  const places = [...TEXT.matchAll(/`(\w+)` in `([\w./-]+\.\w+)`/g)]
  assert.ok(places.length > 0)
  for (const [sentence, name = '', place = ''] of places) {
    const file = fileOf(place)
    assert.ok(file !== null && new RegExp(`\\b${name}\\b`).test(readFileSync(file, 'utf8')), sentence)
  }
})

test('what is not the program stays short', () => {
  const sizeOf = (name: string) => readFileSync(path.join(ROOT, name)).length
  assert.ok(TEXT.length <= 12 * 1_024, `CONTRIBUTING.md: ${TEXT.length} characters. The tree answers most questions`)
  assert.ok(sizeOf('CHANGELOG.md') <= 8 * 1_024, 'CHANGELOG.md')
  const lines = readFileSync(path.join(ROOT, 'README.md'), 'utf8').trimEnd().split('\n').length
  assert.ok(lines <= 130, `README.md: ${lines} lines`)
})

test('every file that the architecture names exists', () => {
  const text = readFileSync(path.join(ROOT, 'docs/architecture.md'), 'utf8')
  const folders = ['', 'server/src', 'server/src/storage', 'contract/src', 'cli/src', 'sdk/src']
  const names = [...text.matchAll(/`([\w./-]+\/[\w-]+\.ts)`/g)].map(([, name = '']) => name)
  assert.ok(names.length > 50)
  assert.deepEqual(
    names.filter((name) => !folders.some((folder) => existsSync(path.join(ROOT, 'packages', folder, name)))),
    [],
  )
})

test('there are at most 40 decision records, the list has each, and each that a comment names exists', () => {
  const folder = path.join(ROOT, 'docs/decisions')
  const records = globSync('0*.md', { cwd: folder }).toSorted()
  assert.ok(records.length <= 40, `${records.length} records: add to the record of the subject`)
  const recordsIn = (file: string, pattern: RegExp) =>
    [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, name = '']) => name)
  assert.deepEqual(recordsIn(path.join(folder, 'README.md'), /\((0[\w-]+\.md)\)/g).toSorted(), records)
  const sources = globSync(['packages/*/{src,test}/**/*.ts', 'scripts/**/*.mjs', 'bench/src/**/*.ts'], { cwd: ROOT })
  const missing = sources.flatMap((file) =>
    recordsIn(path.join(ROOT, file), /decisions\/(0\d{3}-[\w-]+\.md)/g)
      .filter((name) => !records.includes(name))
      .map((name) => `${file}: ${name}`),
  )
  assert.deepEqual(missing, [])
})
