/** Equal and different members of several inputs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differencesOf } from '../src/approvals/input-values.ts'

test('members that all share stand once, the others at their input', () => {
  const inputs = ['{"order":7,"amount":20,"to":{"name":"Ada"}}', '{"amount":20,"order":8,"to":{"name":"Bob"}}']
  assert.deepEqual(differencesOf(inputs), {
    same: [{ name: 'amount', text: '20' }],
    own: [
      [
        { name: 'order', text: '7' },
        { name: 'to.name', text: '"Ada"' },
      ],
      [
        { name: 'order', text: '8' },
        { name: 'to.name', text: '"Bob"' },
      ],
    ],
  })
})

test('a member that one input lacks, a text that looks like a number and other shapes differ', () => {
  const { same, own } = differencesOf(['{"a":1,"b":2}', '{"a":"1"}', '[1]'])
  assert.deepEqual(same, [])
  assert.deepEqual(own, [
    [
      { name: 'a', text: '1' },
      { name: 'b', text: '2' },
    ],
    [{ name: 'a', text: '"1"' }],
    [{ name: '', text: '[1]' }],
  ])
})

test('beside an input that is not recorded or cut off, nothing counts as the same', () => {
  assert.deepEqual(differencesOf(['{"a":1}', null, '{"a":1']), {
    same: [],
    own: [[{ name: 'a', text: '1' }], null, null],
  })
})

test('any number of members is bounded, and two places with one name are both shown', () => {
  const many = JSON.stringify({
    deep: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`m${at}`, at])),
    z: {},
  })
  const [parts] = differencesOf([many]).own
  assert.equal(parts?.length, 0)
  assert.ok(differencesOf([many]).same.length <= 502)
  assert.deepEqual(differencesOf(['{"a":{"b":1},"a.b":2}', '{"a":{"b":1},"a.b":3}']).own[0], [
    { name: 'a.b', text: '1, 2' },
  ])
})
