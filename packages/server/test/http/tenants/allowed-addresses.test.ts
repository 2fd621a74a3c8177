import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalNetwork, isAddressAllowed } from '../../../src/http/tenants/allowed-addresses.ts'

test('a network has one form', () => {
  for (const [given, kept] of [
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7/32', '192.0.2.7'],
    ['192.0.2.7/24', '192.0.2.0/24'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::1/32', '2001:db8::/32'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['::/0', '::/0'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7/120', '192.0.2.0/24'],
  ] as const) {
    assert.equal(canonicalNetwork(given), kept, given)
    assert.equal(canonicalNetwork(kept), kept, given)
  }
})

test('other texts are no network', () => {
  for (const given of [
    '',
    'localhost',
    'example.com',
    '127.1',
    '0x7f000001',
    '2130706433',
    '192.0.2.0/33',
    '192.0.2.0/',
    '192.0.2.0/024',
    '192.0.2.0/-1',
    '192.0.2.0/24/1',
    '192.0.2.0/255.255.255.0',
    '010.0.0.1',
    '2001:db8::/129',
    'fe80::1%eth0',
    '[::1]',
    '192.0.2.1:80',
    ' 192.0.2.1',
  ]) {
    assert.equal(canonicalNetwork(given), null, given)
  }
})

test('an address is allowed within a network of its kind', () => {
  const networks = ['192.0.2.0/24', '198.51.100.7', '2001:db8::/32']
  for (const address of ['192.0.2.0', '192.0.2.255', '198.51.100.7', '::ffff:192.0.2.9', '2001:db8:ffff::1']) {
    assert.ok(isAddressAllowed(networks, address), address)
  }
  for (const address of ['192.0.3.0', '198.51.100.8', '::ffff:198.51.100.8', '2001:db9::', '::', '', 'unknown']) {
    assert.ok(!isAddressAllowed(networks, address), address)
  }
  assert.ok(isAddressAllowed(null, '203.0.113.1'))
  assert.ok(!isAddressAllowed(['0.0.0.0/0'], '2001:db8::1'))
  assert.ok(!isAddressAllowed(['::/0'], '192.0.2.1'))
})
