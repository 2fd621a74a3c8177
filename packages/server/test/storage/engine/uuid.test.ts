import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { isUuid, uuidv5, uuidv7 } from '../../../src/storage/engine/uuid.ts'

const DNS_NAMESPACE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
const timeOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

test('a version 7 id has its time, version and variant', () => {
  const id = uuidv7(0x0190_0000_0001, randomBytes)
  assert.match(id, /^01900000-0001-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.ok(isUuid(id))
})

test('ids of one millisecond increase, however many there are', () => {
  const now = 0x0190_0000_1000
  let last = ''
  for (let made = 0; made < 20_000; made++) {
    const id = uuidv7(now, randomBytes)
    assert.ok(id > last, `${id} after ${last}`)
    last = id
  }
  assert.ok(timeOf(last) - now < 10, 'the counter borrows few milliseconds')
})

test('ids increase while the clock steps back a little, and follow a clock that was set back', () => {
  const now = 0x0190_0100_0000
  const first = uuidv7(now, randomBytes)
  assert.ok(uuidv7(now - 500, randomBytes) > first)
  assert.equal(timeOf(uuidv7(now - 3_600_000, randomBytes)), now - 3_600_000)
})

test('a version 5 id equals the standard one for the same namespace and name', () => {
  assert.equal(uuidv5(DNS_NAMESPACE, 'www.example.com'), '2ed6657d-e927-568b-95e1-2665a8aea6a2')
  assert.equal(uuidv5(DNS_NAMESPACE, 'www.example.com'), uuidv5(DNS_NAMESPACE.toUpperCase(), 'www.example.com'))
  assert.notEqual(uuidv5(DNS_NAMESPACE, 'a'), uuidv5(DNS_NAMESPACE, 'b'))
  assert.ok(isUuid(uuidv5(DNS_NAMESPACE, 'é')))
})

test('only a text of 36 characters in UUID form is a UUID', () => {
  assert.ok(isUuid('2ED6657D-e927-568b-95e1-2665a8aea6a2'))
  for (const text of [
    '',
    '2ed6657de927568b95e12665a8aea6a2',
    '2ed6657d-e927-568b-95e1-2665a8aea6a',
    ' ' + DNS_NAMESPACE,
  ]) {
    assert.ok(!isUuid(text), text)
  }
  assert.ok(!isUuid(`${DNS_NAMESPACE}\n`))
})
