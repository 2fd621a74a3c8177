import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashPassword, verifyPassword } from '../../../src/domain/people/credential.ts'

test('a password is stored as argon2id with a new salt, and only it is accepted', async () => {
  const [one, other] = [await hashPassword('päss'), await hashPassword('päss')]
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.notEqual(one, other)
  assert.equal(await verifyPassword('päss', one), true)
  assert.equal(await verifyPassword('päss', other), true)
  assert.equal(await verifyPassword('pass', one), false)
})

test('the same letters are the same password, in any Unicode form', async () => {
  assert.equal(await verifyPassword('pa\u0308ss', await hashPassword('p\u00e4ss')), true)
})

test('a malformed hash matches no password', async () => {
  for (const text of [null, '', 'x', '$argon2id$v=19$m=1,t=1,p=1$$', '$argon2i$v=19$m=19456,t=2,p=1$YWFhYWFhYWE$YQ']) {
    assert.equal(await verifyPassword('', text), false)
  }
})

test('many at once are all answered', async () => {
  const hash = await hashPassword('one')
  const answers = await Promise.all(['one', 'two', 'one', 'three', 'one'].map((text) => verifyPassword(text, hash)))
  assert.deepEqual(answers, [true, false, true, false, true])
})
