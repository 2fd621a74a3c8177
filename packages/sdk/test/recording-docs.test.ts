/** The pages of docs/sdk document the whole recording API. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const page = (name: string): string => readFileSync(path.join(ROOT, 'docs/sdk', `${name}.md`), 'utf8')
const source = (name: string): string => readFileSync(path.join(ROOT, 'packages/sdk/src', name), 'utf8')

test('every option, counter, reason and diagnostic is described', () => {
  const names = (text: string, from: string): string[] => {
    const body = text.slice(text.indexOf(from), text.indexOf('\n}', text.indexOf(from)))
    return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, name = '']) => name)
  }
  const options = names(source('options.ts'), 'export interface TachoOptions')
  assert.ok(options.length > 20)
  for (const option of options) assert.ok(page('options').includes(`\`${option}\``), option)
  for (const option of names(source('recording/mask.ts'), 'export interface MaskingOptions')) {
    assert.ok(page('options').includes(`\`${option}\``), option)
  }

  const delivery = page('delivery')
  const diagnostics = source('delivery/diagnostics.ts')
  for (const counter of names(diagnostics, 'export interface Counters'))
    assert.ok(delivery.includes(`\`${counter}\``), counter)
  const reasons = [...diagnostics.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, reason = '']) => reason)
  assert.ok(reasons.length >= 9)
  const files = globSync('**/*.ts', { cwd: path.join(ROOT, 'packages/sdk/src') }).map(source)
  const codes = files.flatMap((text) =>
    [...text.matchAll(/report\(\s*'(?:info|warning|error)',\s*'(\w+)'/g)].map(([, code = '']) => code),
  )
  assert.ok(codes.length >= 15)
  for (const name of [...reasons, ...codes]) assert.ok(delivery.includes(`\`${name}\``), name)
})

test('metadata-only keeps the keys that the guide names', () => {
  const [, keys = ''] =
    /const METADATA_KEYS[^(]*\(\s*\(?([\s\S]*?)\)?\.split/.exec(source('recording/metadata.ts')) ?? []
  const kept = keys.match(/\w+/g) ?? []
  assert.ok(kept.length > 15)
  for (const key of kept.filter((name) => name !== 'sampleRate'))
    assert.ok(page('recording').includes(`\`${key}\``), key)
})
