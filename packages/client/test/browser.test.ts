/** The modules that a page loads with the client: no schema, and little else. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { FILES, FOLDER } from '../scripts/endpoints.ts'

/** The modules that `entry` loads, with their code. */
function loadedWith(entry: string, found = new Map<string, string>()): Map<string, string> {
  if (found.has(entry)) return found
  const file = fileURLToPath(entry)
  const source = readFileSync(file, 'utf8')
  const code = file.endsWith('.ts') ? stripTypeScriptTypes(source) : source
  found.set(entry, code)
  for (const [, name = ''] of code.matchAll(/^\s*(?:import|export)[^'"]*?from\s*['"]([^'"]+)['"]/gm)) {
    loadedWith(name.startsWith('.') ? new URL(name, entry).href : import.meta.resolve(name), found)
  }
  return found
}

/** Removes comments and indentation. A bundler also renames, and needs three quarters of that: 5.0 kB instead of 6.6. */
const shortened = (code: string) =>
  code.replaceAll(/^\s*(?:\/\/.*|\/\*[\s\S]*?\*\/)\s*$/gm, '').replaceAll(/^\s+/gm, '')

test('the operator client loads no schema, and is small', () => {
  const loaded = loadedWith(import.meta.resolve('../src/operator.ts'))
  const outside = [...loaded.keys()].filter((name) => !name.includes('/packages/client/src/'))
  assert.ok(loaded.size > 5)
  assert.ok(outside.length > 0 && outside.every((name) => name.includes('/eventsource-parser/')), outside.join('\n'))
  const bytes = gzipSync([...loaded.values()].map(shortened).join('\n')).length
  assert.ok(bytes < 8_000, `${bytes} bytes, gzipped`)
})

test('the endpoints equal those of the contract', () => {
  for (const [name, source] of FILES) {
    const written = readFileSync(new URL(name, FOLDER), 'utf8')
    assert.equal(written, source, `Run scripts/node packages/client/scripts/endpoints.ts: ${name} is out of date`)
  }
})
