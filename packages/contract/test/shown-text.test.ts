import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { lookalikes, printable, printableJson, shownParts } from '../src/engine/shown-text.ts'

const seen = (text: string) => shownParts(text).map(({ text }) => text)
const kinds = (text: string) => shownParts(text).map(({ kind }) => kind)

describe('text of clients as a person reads it', () => {
  test('plain text of any language stays as it is, in one part', () => {
    for (const text of [
      'Pay 120.50 € to Ana',
      'Überweisung an José',
      'Платёж отклонён',
      'πληρωμή',
      '支払い',
      'नमस्ते',
      '한국어',
    ]) {
      assert.deepEqual(shownParts(text), [{ kind: 'text', text }], text)
    }
  })

  test('controls, direction, invisible and unusual spaces are escapes', () => {
    for (const [character, escape] of [
      ['\n', '\\n'],
      ['\t', '\\t'],
      ['\0', '\\u0000'],
      ['\u001b', '\\u001b'],
      ['\u009b', '\\u009b'],
      ['\u00a0', '\\u00a0'],
      ['\u00ad', '\\u00ad'],
      ['\u034f', '\\u034f'],
      ['\u115f', '\\u115f'],
      ['\u200b', '\\u200b'],
      ['\u200d', '\\u200d'],
      ['\u202e', '\\u202e'],
      ['\u2066', '\\u2066'],
      ['\u2028', '\\u2028'],
      ['\u2800', '\\u2800'],
      ['\u3164', '\\u3164'],
      ['\ufe0f', '\\ufe0f'],
      ['\ufeff', '\\ufeff'],
      ['\u0336', '\\u0336'],
      ['\ue000', '\\ue000'],
      ['\u{e0041}', '\\udb40\\udc41'],
    ] as const) {
      assert.deepEqual(seen(`re${character}fund`), ['re', escape, 'fund'], escape)
      assert.equal(printable(`re${character}fund`), `re${escape}fund`)
      assert.equal(JSON.parse(`"${printable(character)}"`), character)
    }
    assert.deepEqual(seen('\ud800'), ['\ufffd'])
  })

  test('line breaks stay where they are wanted, and in JSON', () => {
    assert.deepEqual(shownParts('one\ntwo\r', { lineBreaks: true }), [
      { kind: 'text', text: 'one\ntwo' },
      { kind: 'escape', text: '\\r', raw: '\r' },
    ])
    const json = '{\n\t"a": "\u202e\u{e0041}"\r\n}'
    assert.equal(printableJson(json), '{\n\t"a": "\\u202e\\udb40\\udc41"\r\n}')
    assert.deepEqual(JSON.parse(printableJson(json)), JSON.parse(json))
  })

  test('emoji stay whole; their joiners elsewhere are escapes', () => {
    for (const text of ['👍', '👩‍💻', '✔️ done', '👩🏽‍💻', '❤️‍🔥']) assert.deepEqual(seen(text), [text], text)
    assert.deepEqual(seen('a\u200d👍'), ['a', '\\u200d', '👍'])
  })

  test('piled marks are escapes, marks of languages are not', () => {
    assert.deepEqual(seen('a\u0301\u0302\u0303\u0304'), ['a\u0301\u0302\u0303', '\\u0304'])
    assert.deepEqual(kinds('Việt'.normalize('NFD')), ['text'])
  })

  test('letters of two scripts in a word are marked, and named', () => {
    assert.deepEqual(shownParts('call rеfund now'), [
      { kind: 'text', text: 'call ' },
      { kind: 'lookalike', text: 'rеfund', note: 'Latin letters mixed with Cyrillic е U+0435' },
      { kind: 'text', text: ' now' },
    ])
    assert.deepEqual(lookalikes('gοοgle'), ['“gοοgle”: Latin letters mixed with Greek ο U+03BF'])
    assert.deepEqual(lookalikes('сору'), [
      '“сору”: Cyrillic letters that look like Latin ones: с U+0441, о U+043E, р U+0440 …',
    ])
    assert.deepEqual(lookalikes('ｒｅfund')[0]?.includes('U+FF52'), true)
    assert.deepEqual(lookalikes('𝐩𝐚𝐲')[0]?.includes('U+1D429'), true)
    assert.deepEqual(lookalikes('refund(order_4711) в банк, оплата'), [])
    // An invisible character does not part the word.
    assert.deepEqual(lookalikes('r\u200bеfund').length, 1)
  })

  test('a megabyte takes no longer than its length', () => {
    const started = performance.now()
    for (const text of [
      'a\u0301'.repeat(250_000),
      '\u202e'.repeat(250_000),
      'а_'.repeat(250_000),
      '👩‍'.repeat(100_000),
      'аb '.repeat(100_000),
    ]) {
      assert.ok(shownParts(text).length > 0)
      assert.ok(printable(text).length > 0)
    }
    assert.ok(performance.now() - started < 60_000)
  })
})
