import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { isNewer } from '../src/web/version.ts'
import { runCommand } from './tacho.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-version-'))
after(() => rmSync(directory, { recursive: true }))

test('a version is newer by its numbers, and than its own pre-releases', () => {
  for (const [one, other, newer] of [
    ['0.2.0', '0.1.9', true],
    ['0.10.0', '0.9.0', true],
    ['0.1.0', '0.1.0-dev+23c70e77', true],
    ['0.1.0', '0.1.0', false],
    ['0.1.0-dev+a', '0.1.0-dev+b', false],
    ['0.1.0-rc.1', '0.1.0', false],
    ['0.1.0', '0.1.1-dev+a', false],
    ['0.1.0+linux', '0.1.0+mac', false],
    ['1.0.0', '0.99.99', true],
  ] as const) {
    assert.equal(isNewer(one, other), newer, `${one} ${other}`)
  }
})

test('the version is compared with a file that the operator names, and nobody is asked', async () => {
  const check = async (content: string, ...more: string[]) => {
    const file = path.join(directory, 'newest')
    writeFileSync(file, content)
    const { code, stdout, stderr } = await runCommand(['version', '--check', file, ...more])
    return [code, stdout + stderr] as const
  }
  const [, own] = await check('0.0.1\n')
  assert.match(own, /^0\.1\.0\S* is the newest version\n$/)
  assert.deepEqual((await check('0.0.1'))[0], 0)
  const [code, text] = await check('{ "name": "tacho", "version": "99.0.0" }')
  assert.equal(code, 1)
  assert.match(text, /^0\.1\.0\S*; 99\.0\.0 is newer\n$/)
  const [, json] = await check('v99.0.0', '--json')
  const { newest, isNewest } = JSON.parse(json) as { newest: string; isNewest: boolean }
  assert.deepEqual([newest, isNewest], ['99.0.0', false])
  for (const content of ['newest', '{"version":2}', '{"a":"'.repeat(10_000)]) {
    const [status, message] = await check(content)
    assert.equal(status, 2, content.slice(0, 20))
    assert.match(message, /^tacho: .*newest names no version such as 0\.2\.0\.\n$/)
  }
  const missing = await runCommand(['version', '--check', path.join(directory, 'none')])
  assert.equal(missing.code, 2)
})
