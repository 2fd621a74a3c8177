import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { parseSearchQuery } from '../../../src/domain/runs/search-query.ts'
import { matchEvent, payloadTexts, wordsOf } from '../../../src/storage/runs/search.ts'

const words = (text: string) => wordsOf(text).map(({ word }) => word)

test('every text is a query or a fault at a place in it', () => {
  const piece = fc.constantFrom('a', 'ö', '東', '𝄞', '"', '-', ':', 'tool:', 'x:', ' ', '\n', '(', '*', 'AND')
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: anyCharacter }),
    fc.array(piece).map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(text, (query) => {
      const parsed = parseSearchQuery(query)
      if (parsed.ok) {
        assert.ok(parsed.clauses.some(({ isExcluded }) => !isExcluded))
        assert.ok(parsed.clauses.every((clause) => clause.words.length > 0))
      } else assert.ok(parsed.position >= 1 && parsed.position <= Array.from(query).length + 1)
    }),
    { numRuns: 500 },
  )
})

test('a written query is read back', () => {
  const value = fc.constantFrom('refund', 'Café 4711', 'a_b', '東京', 'AND')
  const item = fc.record({
    isExcluded: fc.boolean(),
    field: fc.constantFrom(
      null,
      'tool' as const,
      'type' as const,
      'agent' as const,
      'model' as const,
      'label' as const,
    ),
    value,
    isQuoted: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 5 }), (items) => {
      const first = items.map((one, index) => ({ ...one, isExcluded: one.isExcluded && index > 0 }))
      const text = first.map(({ isExcluded, field, value: of, isQuoted }) => {
        const quoted = isQuoted || of.includes(' ') ? `"${of}"` : of
        return `${isExcluded ? '-' : ''}${field === null ? '' : `${field}:`}${quoted}`
      })
      const clauses = first.map(({ isExcluded, field, value: of }) => ({ field, words: words(of), isExcluded }))
      assert.deepEqual(parseSearchQuery(text.join('  ')), { ok: true, clauses })
    }),
  )
})

test('words have no case and no accents, and end at everything but letters and digits', () => {
  assert.deepEqual(words('Crème BRÛLÉE_2 order-4711 <b>'), ['creme', 'brulee', '2', 'order', '4711', 'b'])
  assert.deepEqual(words('東京Tower'), ['東', '京', 'tower'])
  assert.deepEqual(words('x'.repeat(300)), ['x'.repeat(100)])
})

test('the texts of a payload are its strings and numbers as they were sent, without keys', () => {
  const payload = '{"key" :"a\\"b\\u00e9","n":[9007199254740993,-1.50],"o":{"k\\"":"\\\\"},"t":true}'
  assert.deepEqual(payloadTexts(payload), ['a"bé', '9007199254740993', '-1.50', '\\'])
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const found: string[] = []
      const collect = (one: unknown): void => {
        if (typeof one === 'string') found.push(one)
        else if (typeof one === 'number') found.push(JSON.stringify(one))
        else if (typeof one === 'object' && one !== null) for (const each of Object.values(one)) collect(each)
      }
      collect(value)
      assert.deepEqual(payloadTexts(JSON.stringify(value)), found)
    }),
  )
})

test('a snippet of a text full of hits marks all that it shows', () => {
  const text = `${'zz '.repeat(50)}${'a b '.repeat(50_000)}`
  const event = { eventType: 'CUSTOM', label: '', agentId: null, agentName: '', payload: JSON.stringify({ text }) }
  const parsed = parseSearchQuery(`a b "a b" ${'b '.repeat(28)}`)
  const parts = (parsed.ok && matchEvent(event, parsed.clauses)) || []
  assert.equal(parts.map((part) => part.text).join(''), `…${text.slice(90, 330)}…`)
  const marked = Array.from({ length: 45 }, () => 'a b')
  const hits = parts.filter(({ isHit }) => isHit).map((part) => part.text)
  assert.deepEqual(hits, marked)
  assert.equal(matchEvent(event, [{ field: null, words: ['a', 'a'], isExcluded: false }]), null)
})
