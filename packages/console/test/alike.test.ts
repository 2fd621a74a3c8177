/** The good run that a failed one is compared with: the one that was asked the most alike. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mostAlike } from '../src/runs/page/alike-runs.ts'

const runs = (...titles: (string | null)[]) => titles.map((title) => ({ title }))
const found = (title: string | null, ...titles: (string | null)[]) => mostAlike(title, runs(...titles))?.title

test('the same question comes first, then the most words in common, whatever the numbers', () => {
  const asked = 'Change the address of order A-15845.'
  const near = 'Change the address of order A-84678.'
  assert.equal(found(asked, 'Where is my order A-1?', near), near)
  assert.equal(found(asked, near, asked), asked)
  assert.equal(found('Wo ist mein Paket?', 'Where is it?', 'Wo ist meine Bestellung?'), 'Wo ist meine Bestellung?')
})

test('without anything in common, the first one counts, and without runs there is none', () => {
  assert.equal(found('Refund it', 'Hello', 'Good day'), 'Hello')
  assert.equal(found(null, 'Hello', null), null)
  assert.equal(found(null, 'Hello', 'Good day'), 'Hello')
  assert.equal(found('...', '42', '???'), '42')
  assert.equal(mostAlike('Refund it', []), null)
})
