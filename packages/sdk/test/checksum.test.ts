import assert from 'node:assert/strict'
import { test } from 'node:test'
import type * as MaskModule from '../src/recording/mask.ts'
import { createMask, loadChecksum, type MaskingOptions } from '../src/recording/mask.ts'

const masked = (value: unknown, options: MaskingOptions = {}): unknown =>
  JSON.parse(createMask(options).json(JSON.stringify(value)))

// Clients load the checksum code shortly after they are created. These tests need it from the start.
await loadChecksum()

test('until the checksum code is loaded, everything like a card or account number is masked', async () => {
  const copy = '../src/recording/mask.ts?not-loaded'
  const fresh = (await import(copy)) as typeof MaskModule
  const card = { text: 'card 4111 1111 1111 1112' }
  const iban = { text: 'IBAN DE89 3704 0044 0532 0130 01' }
  const first = (options: MaskingOptions, payload: object): unknown =>
    JSON.parse(fresh.createMask(options).json(JSON.stringify(payload)))
  assert.deepEqual(first({ cardNumber: true }, card), { text: 'card [masked:card]' })
  assert.deepEqual(first({ iban: true }, iban), { text: 'IBAN [masked:iban]' })
  await fresh.loadChecksum()
  assert.deepEqual(first({ cardNumber: true }, card), card)
  assert.deepEqual(first({ iban: true }, iban), iban)
})

test('card and account numbers are found however they are grouped, and beside other digits', () => {
  const groups = ['4111', '1111', '1111', '1111']
  for (const separator of ['', ' ', '-', '.', '\u00a0', '\u2009', '\u202f', '\u2013']) {
    const number = groups.join(separator)
    for (const text of [number, `pay ${number} now`, `12 ${number} 12/27`, `${number} 123`, `x-${number}.`]) {
      const result = masked(text, { cardNumber: true }) as string
      assert.equal(result, text.replace(number, '[masked:card]'), text)
    }
    const iban = ['DE89', '3704', '0044', '0532', '0130', '00'].join(separator)
    for (const text of [iban, iban.toLowerCase(), `IBAN ${iban} BIC COBADEFF`, `AB12 ${iban} and more`]) {
      const result = masked(text, { iban: true }) as string
      assert.equal(result, text.replace(new RegExp(iban.replaceAll('.', '\\.'), 'i'), '[masked:iban]'), text)
    }
  }
})
