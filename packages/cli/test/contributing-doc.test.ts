/** Keeps the places that CONTRIBUTING.md and docs/architecture.md name correct. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
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
  assert.ok(paths.length > 40)
  assert.deepEqual(
    paths.filter((name) => fileOf(name) === null),
    [],
  )
})

test('every name that the guide places in a file is in that file', () => {
  const places = [...TEXT.matchAll(/`(\w+)` in `([\w./-]+\.\w+)`/g)]
  assert.ok(places.length > 4)
  for (const [sentence, name = '', place = ''] of places) {
    const file = fileOf(place)
    assert.ok(file !== null && new RegExp(`\\b${name}\\b`).test(readFileSync(file, 'utf8')), sentence)
  }
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
