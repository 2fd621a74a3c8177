import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { inputHash } from '../src/input/input-hash.ts'
import { sealedInputHash, sealInput, sealKey, UnfitSeals, valueAt } from '../src/input/sealed-input.ts'

const KEY = sealKey('an API key')
const SEAL = 'ab'.repeat(32)

test('the masked input has the hash of the input, and a seal is keyed, so that nobody can guess what it hides', () => {
  const input = { amount: 5, card: '4111' }
  const seals = sealInput(KEY, input, ['/card'])
  const key = createHmac('sha256', 'an API key').update('tacho-seal-1').digest()
  assert.deepEqual(seals, { '/card': createHmac('sha256', key).update('["/card","4111"]').digest('hex') })
  const text = `["tacho-input-2","refund",{"amount":5,"card":{"tachoSeal":"${seals['/card']}"}}]`
  const hash = createHash('sha256').update(text).digest('hex')
  assert.equal(sealedInputHash('refund', input, seals), hash)
  assert.equal(sealedInputHash('refund', { amount: 5, card: '[masked:card]' }, seals), hash)
  assert.notEqual(sealedInputHash('refund', { amount: 6, card: '[masked:card]' }, seals), hash)
  assert.notEqual(sealedInputHash('pay', input, seals), hash)
  assert.notDeepEqual(sealInput(sealKey('another'), input, ['/card']), seals)
  assert.notDeepEqual(sealInput(KEY, { a: '4111', card: '' }, ['/a'])['/a'], seals['/card'])
})

test('a value that looks sealed is sealed, so that no input passes for a masked one', () => {
  const literal = { to: { tachoSeal: SEAL } }
  assert.throws(() => sealedInputHash('t', literal, {}), UnfitSeals)
  assert.deepEqual(Object.keys(sealInput(KEY, literal, [])), ['/to'])
  const hash = sealedInputHash('t', literal, sealInput(KEY, literal, []))
  assert.notEqual(hash, sealedInputHash('t', { to: 'eve' }, { '/to': SEAL }))
  assert.notEqual(hash, inputHash('t', literal))
  assert.deepEqual(sealInput(KEY, { tachoSeal: 'x', more: 1 }, []), {})
})

test('seals that do not belong to the input are refused', () => {
  const input = { a: [1, { b: 2 }], '': 3 }
  const refused = [
    { '/c': SEAL },
    { '/a/2': SEAL },
    { '/a/01': SEAL },
    { '/a/-1': SEAL },
    { '/a/length': SEAL },
    { '/__proto__': SEAL },
    { '/constructor': SEAL },
    { '/a': SEAL, '/a/0': SEAL },
    { '/a/1/b': SEAL, '/a/1': SEAL },
    { '': SEAL, '/a': SEAL },
    { a: SEAL },
    { '/a~01': SEAL },
  ]
  for (const seals of refused) assert.throws(() => sealedInputHash('t', input, seals), UnfitSeals)
  for (const seals of [{ '/a/1/b': SEAL, '/': SEAL }, { '': SEAL }]) assert.ok(sealedInputHash('t', input, seals))
  assert.equal(valueAt(input, '/a/1/b'), 2)
  for (const pointer of ['/a/length', '/constructor', '/__proto__', '/a/2'])
    assert.equal(valueAt(input, pointer), undefined)
})

test('long keys above many values cost no more than the input is long', () => {
  const key = 'k'.repeat(100_000)
  const input = { [key]: Array.from({ length: 50_000 }, (_, index) => index) }
  const begun = performance.now()
  assert.ok(sealedInputHash('t', input, { [`/${key}/7`]: SEAL }))
  assert.ok(performance.now() - begun < 2_000)
})
