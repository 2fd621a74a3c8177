/** The table "how do I connect X" is the same in the README and in the console, and its pages exist. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { CONNECTIONS } from '../src/get-started/connections.ts'

const ROOT = new URL('../../../', import.meta.url)

test('every way to connect an agent names a page that exists and explains it', () => {
  for (const { name, page } of CONNECTIONS) assert.ok(existsSync(new URL(page, ROOT)), `${name}: ${page}`)
})

test('the README has the same table as the console', () => {
  const readme = readFileSync(new URL('README.md', ROOT), 'utf8')
  const rows = [...readme.matchAll(/^\| ([^|]+?) +\| `([^`]+)` +\| (yes|no) +\| \[([^\]]+)\]/gm)]
  assert.deepEqual(
    rows.map(([, name, line, guards, page]) => ({ name, line, guardsTools: guards === 'yes', page })),
    CONNECTIONS,
  )
})
