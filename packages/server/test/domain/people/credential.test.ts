import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import {
  newApiKey,
  newOperatorToken,
  parseApiKey,
  parseOperatorToken,
  sameHash,
} from '@tacho/server/domain/people/credential.ts'

const id = 'a'.repeat(8)
const secret = 'B'.repeat(32)

test('a new key has 64 public and 256 secret bits and parses to its stored form', () => {
  const key = newApiKey(randomBytes)
  assert.match(key.text, /^tacho_[0-9a-f]{16}_[0-9a-f]{64}$/)
  assert.deepEqual(parseApiKey(key.text), { id: key.id, hash: key.hash })
  assert.equal(key.hash, createHash('sha256').update(key.text).digest('hex'))
  assert.notEqual(newApiKey(randomBytes).text, key.text)
})

test('a new operator token parses to its stored form', () => {
  const token = newOperatorToken(randomBytes)
  assert.match(token.text, /^tacho-operator_[0-9a-f]{16}_[0-9a-f]{64}$/)
  assert.deepEqual(parseOperatorToken(token.text), { id: token.id, hash: token.hash })
})

test('a key is not an operator token, and a token is not a key', () => {
  assert.equal(parseOperatorToken(newApiKey(randomBytes).text), null)
  assert.equal(parseApiKey(newOperatorToken(randomBytes).text), null)
})

test('a supplied key may use letters and digits, within its length limits', () => {
  assert.equal(parseApiKey(`tacho_${id}_${secret}`)?.id, id)
  assert.equal(parseApiKey(`tacho_${'z'.repeat(64)}_${'9'.repeat(128)}`)?.id, 'z'.repeat(64))
  for (const text of [
    `tacho_${'a'.repeat(7)}_${secret}`,
    `tacho_${'a'.repeat(65)}_${secret}`,
    `tacho_${id}_${'B'.repeat(31)}`,
    `tacho_${id}_${'B'.repeat(129)}`,
    `tacho_${id}_${secret}_`,
    `tacho_${id}_${secret}\n`,
    ` tacho_${id}_${secret}`,
    `tacho_${id}_${secret.slice(1)}-`,
    `Tacho_${id}_${secret}`,
    `tacho_${id}${secret}`,
    '',
  ]) {
    assert.equal(parseApiKey(text), null, JSON.stringify(text))
  }
})

test('hashes are compared as texts: another case, length or digit differs', () => {
  const one = parseApiKey(`tacho_${id}_${secret}`)?.hash ?? ''
  assert.ok(sameHash(one, one))
  assert.ok(!sameHash(one, one.toUpperCase()))
  assert.ok(!sameHash(one, one.slice(1)))
  assert.ok(!sameHash(one, `${one.slice(0, -1)}${one.endsWith('0') ? '1' : '0'}`))
})
