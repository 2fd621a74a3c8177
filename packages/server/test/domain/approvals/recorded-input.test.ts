import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputCheckText } from '@tacho/contract/approvals/approval-text.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { sealedInputHash, sealInput, sealKey } from '@tacho/policy/input/sealed-input.ts'
import { checkInput } from '../../../src/domain/approvals/recorded-input.ts'

const KEY = sealKey('an API key')
const MASK = '[masked:credential]'

function check(hash: string, json: string, given: { seals?: unknown; isShortened?: boolean; scheme?: string } = {}) {
  const { seals = null, isShortened = false, scheme = null } = given
  const { result, reason, sealed } = checkInput(
    { toolName: 'pay', inputHash: hash, hashScheme: scheme },
    { json, seals, isShortened },
  )
  return result === 'cannot_be_checked' ? reason : `${result} ${sealed}`
}
const hashOf = (input: unknown) => inputHash('pay', input)

test('an input matches by what it says, however it is written; another one does not', () => {
  const asked = hashOf({ amount: 99_999, to: 'attacker' })
  assert.equal(check(asked, '{"amount":5,"to":"ada"}'), 'does_not_match 0')
  for (const json of ['{ "to":"attacker", "amount":99999.0 }', '{"amount":9.9999E4,"to":"\\u0061ttacker"}']) {
    assert.equal(check(asked, json), 'matches 0')
  }
  assert.equal(
    check(hashOf({ a: -0, b: 1e21, c: [5e-324] }), '{"a":-0.0,"b":1000000000000000000000,"c":[5e-324]}'),
    'matches 0',
  )
})

test('a text that says two things matches nothing: duplicate keys, and numbers beyond doubles', () => {
  assert.equal(check(hashOf({ amount: 99_999 }), '{"amount":5,"amount":99999}'), 'does_not_match 0')
  assert.equal(check(hashOf({ a: { b: 2 } }), '{"a":{"b":1,"\\u0062":2}}'), 'does_not_match 0')
  assert.equal(check(hashOf({ id: 2 ** 53 }), '{"id":9007199254740993}'), 'does_not_match 0')
  assert.equal(check(hashOf({ id: 0.1 }), '{"id":0.1000000000000000055}'), 'does_not_match 0')
  // A number of 200,000 digits. A slow search for its trailing zeros would take minutes.
  assert.equal(check(hashOf({ id: 1 }), `{"id":1${'0'.repeat(200_000)}1}`), 'does_not_match 0')
  assert.equal(check(hashOf({ id: 1 }), `{"id":${'1'.repeat(401)}}`), 'does_not_match 0')
  const own = JSON.parse('{"__proto__":{"a":1}}') as unknown
  assert.equal(check(hashOf(own), '{"__proto__":{"a":1}}'), 'matches 0')
  assert.equal(check(hashOf({}), '{"__proto__":{"a":1}}'), 'does_not_match 0')
})

test('only the mark of an SDK says that an input was shortened', () => {
  assert.equal(check(hashOf({ a: 1 }), '{"a":"[cut: 5 characters]"}'), 'does_not_match 0')
})

test('without seals a mask hides whether it matches, also if the tool gets the mask itself', () => {
  assert.equal(check(hashOf({ token: 'k' }), `{"token":"${MASK}"}`), 'masked')
  assert.equal(check(hashOf({ token: MASK }), `{"token":"${MASK}"}`), 'masked')
})

test('a check names the members that it cannot show', () => {
  const input = { token: 'k-1', to: { mail: 'ada@example.com' } }
  const seals = sealInput(KEY, input, ['/token', '/to/mail'])
  const request = { toolName: 'pay', inputHash: sealedInputHash('pay', input, seals), hashScheme: null }
  const json = JSON.stringify({ token: MASK, to: { mail: '[masked:email]' } })
  const checked = checkInput(request, { json, seals, isShortened: false })
  assert.deepEqual(checked, { result: 'matches', reason: null, sealed: 2, sealedAt: ['/token', '/to/mail'] })
  assert.equal(inputCheckText(checked), 'matches what the agent asked for, with 2 masked values: /token, /to/mail')
  const many = { ...checked, sealed: 9, sealedAt: ['/a', '/b', '/c', '/d', '/e', '/f\u202e'] }
  assert.match(inputCheckText(many), /: \/a, \/b, \/c, \/d, \/e and 4 more$/)
  assert.match(inputCheckText({ ...many, sealed: 1, sealedAt: ['/f\u202e'] }), /: \/f\\u202e$/)
})

test('sealed members are covered by the hash, and what is shown beside them too', () => {
  const input = { amount: 5, token: 'k-1', to: 'mail ada@example.com' }
  const seals = sealInput(KEY, input, ['/token', '/to'])
  const hash = sealedInputHash('pay', input, seals)
  const shown = (amount: number, to: string) => JSON.stringify({ amount, token: MASK, to })
  assert.equal(check(hash, shown(5, 'mail [masked:email]'), { seals }), 'matches 2')
  assert.equal(check(hash, shown(6, 'mail [masked:email]'), { seals }), 'does_not_match 0')
  assert.equal(check(hash, shown(5, 'mail [masked:email]')), 'masked', 'the seals are missing')
  assert.equal(
    check(hash, shown(5, 'mail eve@example.com'), { seals }),
    'masked',
    'a sealed value is shown without a mask',
  )
})

test('a seal hides nothing that is no mask', () => {
  const input = { amount: 99_999, to: 'attacker' }
  const seals = sealInput(KEY, input, ['/amount'])
  assert.equal(
    check(sealedInputHash('pay', input, seals), '{"amount":5,"to":"attacker"}', { seals }),
    'does_not_match 0',
  )
  const whole = sealInput(KEY, input, [''])
  assert.equal(check(sealedInputHash('pay', input, whole), `{"amount":5,"note":"${MASK}"}`, { seals: whole }), 'masked')
  const hash = hashOf({ amount: 5 })
  const forged = [
    { '/none': 'ab'.repeat(32) },
    { '/__proto__': 'ab'.repeat(32) },
    { '/amount': 'no seal' },
    { '/amount': 5 },
    ['/amount'],
    'text',
    { '': 'ab'.repeat(32), '/amount': 'ab'.repeat(32) },
  ]
  for (const one of forged)
    assert.equal(check(hash, '{"amount":5}', { seals: one }), 'does_not_match 0', JSON.stringify(one))
  assert.equal(check(hash, '{"amount":5}', { seals: {} }), 'matches 0')
})

test('says what cannot be checked: another scheme, a shortened input, none at all', () => {
  assert.equal(check('ab'.repeat(16), '{"amount":5}'), 'other_scheme')
  assert.equal(check(hashOf({ amount: 5 }), '{"amount":5}', { scheme: 'ours' }), 'other_scheme')
  assert.equal(check('ab'.repeat(32), '{"text":"x… [cut: 900 characters]"}', { isShortened: true }), 'shortened')
  assert.equal(
    check('ab'.repeat(32), '{"amount":5}', { isShortened: true }),
    'does_not_match 0',
    'nothing of it is cut',
  )
  const none = checkInput({ toolName: 'pay', inputHash: 'ab'.repeat(32), hashScheme: null }, null)
  assert.equal(none.reason, 'not_recorded')
})

test('the largest and the deepest inputs are checked within bounds', () => {
  const begun = performance.now()
  const large = JSON.stringify({ list: Array.from({ length: 40_000 }, (_, at) => at) })
  assert.equal(check(hashOf(JSON.parse(large)), large), 'matches 0')
  assert.equal(check('ab'.repeat(32), '['.repeat(5_000) + ']'.repeat(5_000)), 'does_not_match 0')
  assert.ok(performance.now() - begun < 5_000)
})
