import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestName } from '@tacho/server/domain/web/text.ts'

const known = ['--port', '--host', '--data-dir']

test('a name with a third of its letters wrong is recognised, one with more is not', () => {
  assert.equal(nearestName('--prot', known), '--port')
  assert.equal(nearestName('--datadir', known), '--data-dir')
  assert.equal(nearestName('--xyzw', known), null)
  assert.equal(nearestName('', known), null)
})

test('of two similar names the nearer one is suggested', () => {
  assert.equal(nearestName('--hos', ['--port', '--host']), '--host')
})
