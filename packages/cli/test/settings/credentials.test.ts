import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { readAccount, readApiKey } from '../../src/engine/credentials.ts'
import { readUrl } from '../../src/engine/server-address.ts'

const NO_PROFILES = { XDG_CONFIG_HOME: '/nonexistent' }

test('the address comes from the flag, then the variable, then the default', () => {
  assert.equal(readUrl('http://a:1/', { TACHO_URL: 'http://b:2' }), 'http://a:1')
  assert.equal(readUrl(undefined, { TACHO_URL: 'https://b.example/tacho/' }), 'https://b.example/tacho')
  assert.equal(readUrl(undefined, {}), 'http://localhost:4680')
})

test('an invalid address is wrong usage, and the sentence names its source', () => {
  for (const address of ['', '  ', 'localhost:4680', 'ftp://x', 'http://', 'http://user:secret@host']) {
    assert.throws(() => readUrl(undefined, { TACHO_URL: address }), { exitCode: 2, message: /^TACHO_URL (is|must)/ })
  }
  assert.throws(() => readUrl('nonsense', {}), { exitCode: 2, message: /^--url must/ })
})

test('a missing, empty or invalid credential is wrong usage and is never printed', () => {
  assert.throws(() => readApiKey({}), { exitCode: 2, message: /^No API key: set TACHO_API_KEY/ })
  assert.throws(() => readAccount({}, NO_PROFILES), { exitCode: 2, message: /^No operator token/ })
  assert.throws(() => readApiKey({ TACHO_API_KEY: '' }), { exitCode: 2, message: /^TACHO_API_KEY is empty/ })
  for (const text of ['a secret', 'secrét', 'sec\nret']) {
    assert.throws(
      () => readApiKey({ TACHO_API_KEY: text }),
      (error: Error) => !error.message.includes(text),
    )
  }
  assert.equal(readApiKey({ TACHO_API_KEY: 'tacho_a_b\n' }), 'tacho_a_b')
  assert.throws(() => readApiKey({ TACHO_API_KEY: 'tacho-operator_a_b' }), {
    exitCode: 2,
    message: /is an operator token/,
  })
  assert.throws(() => readAccount({}, { TACHO_OPERATOR_TOKEN: 'tacho_a_b' }), {
    exitCode: 2,
    message: /^TACHO_OPERATOR_TOKEN is an API key/,
  })
})

test('a token file wins over the variable, and an unreadable file is named', () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-cli-'))
  try {
    const file = path.join(directory, 'token')
    writeFileSync(file, 'from-file\n')
    assert.equal(readAccount({ tokenFile: file }, { TACHO_OPERATOR_TOKEN: 'other' }).token, 'from-file')
    assert.throws(() => readAccount({ tokenFile: `${file}-not` }, {}), {
      exitCode: 2,
      message: /cannot be read \(ENOENT\)/,
    })
  } finally {
    rmSync(directory, { recursive: true })
  }
})
