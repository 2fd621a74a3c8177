import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeText } from '../../src/people/audit.ts'

test('changes of the audit log are words, not JSON', () => {
  assert.equal(changeText({}), '')
  const change = { name: { from: 'a', to: 'b' }, scopes: ['events:write', 'usage:read'], expiresAt: null }
  assert.equal(changeText(change), 'name: a → b, scopes: events:write usage:read, expires at: none')
  assert.equal(changeText({ rate: { before: 5, after: null } }), 'rate: 5 → none')
  assert.equal(changeText({ filter: { agent: 'x', all: true } }), 'filter: (agent: x, all: true)')
})
