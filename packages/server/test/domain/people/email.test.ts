import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainOf, isEmail, lowerCase } from '../../../src/domain/people/identity.ts'

test('an address has a name, an @ and a domain, and nothing that would break a header or a page', () => {
  for (const good of [
    'a@b',
    'ann.lee+x@mail.example.com',
    'jürgen@müller.example',
    "o'neil@example.com",
    'a@127.0.0.1',
  ]) {
    assert.ok(isEmail(good), good)
  }
  for (const bad of [
    '',
    'a',
    '@b',
    'a@',
    'a@b c',
    'a b@c',
    'a@b\n',
    '<a@b>',
    'a,b@c',
    'a@-b',
    'a@b..c',
    'a@b_c',
    'a@@b',
  ]) {
    assert.ok(!isEmail(bad), bad)
  }
  assert.ok(isEmail(`${'a'.repeat(64)}@example.com`))
  assert.ok(!isEmail(`${'a'.repeat(65)}@example.com`))
})

test('addresses are compared in lower case, and the domain follows the last @', () => {
  assert.equal(lowerCase('Ann@EXAMPLE.com'), 'ann@example.com')
  assert.equal(lowerCase('JÜRGEN@Müller.example'), 'jürgen@müller.example')
  // The Kelvin sign and the dotted I are other letters: their addresses belong to other people.
  for (const other of ['\u212aate@example.com', '\u0130an@example.com']) assert.equal(lowerCase(other), other)
  assert.equal(domainOf('a@b.example'), 'b.example')
})
