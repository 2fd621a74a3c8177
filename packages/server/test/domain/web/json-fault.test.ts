import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonFault } from '../../../src/domain/web/json-body.ts'

test('the sentence names the line and column of the first wrong token, and quotes nothing', () => {
  const at = (line: number, column: number) => `The body is not valid JSON at line ${line}, column ${column}`
  const ends = (line: number, column: number) =>
    `The body ends before its JSON is complete, at line ${line}, column ${column}`
  for (const [text, sentence] of [
    ['', 'The body is empty'],
    [' \n', 'The body is empty'],
    ['[1,]', at(1, 4)],
    ['[NaN]', at(1, 2)],
    ["{'secret':1}", at(1, 2)],
    ['{\n  "a": 1,\n  "b": undefined\n}', at(3, 8)],
    ['{"a":1,}', at(1, 8)],
    ['{"a" 1}', at(1, 6)],
    ['[1}', at(1, 3)],
    ['1 2', at(1, 3)],
    ['[01]', at(1, 3)],
    ['["a\nb"]', at(1, 2)],
    ['["\\x"]', at(1, 2)],
    ['["\\u12g4"]', at(1, 2)],
    ['["\\', at(1, 2)],
    ['[1', ends(1, 3)],
    ['{"a":\n', ends(2, 1)],
  ] as const) {
    assert.equal(jsonFault(text), sentence, JSON.stringify(text))
  }
})

test('deep nesting and long strings do not overflow the stack', () => {
  assert.match(jsonFault('['.repeat(500_000)), /^The body ends before .* column 500001$/)
  assert.match(jsonFault(`["${'\\n'.repeat(500_000)}",]`), /column 1000005$/)
  assert.match(jsonFault(`${'\n'.repeat(500_000)} x`), /line 500001, column 2$/)
  assert.match(jsonFault(`["${'\\u8a9e'.repeat(100_000)}",`), /column 600005$/)
  assert.equal(jsonFault(`${'\n'.repeat(2_000_000)}x`), 'The body is not valid JSON')
})

test('everything before the place is the start of valid JSON', () => {
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom(',', '}', ']', ':', '@', "'"))
    .map(([json, place, char]) => {
      const at = place % (json.length + 1)
      return json.slice(0, at) + char + json.slice(at)
    })
  fc.assert(
    fc.property(broken, (text) => {
      const known = positionOf(text)
      if (known === null) return
      const column = Number(/column (\d+)$/.exec(jsonFault(text))?.[1])
      // V8 points into a string or number; the sentence points at its start.
      assert.ok(column - 1 <= known, `${text}: ${column - 1} and ${known}`)
      assert.doesNotThrow(() => parseSoFar(text.slice(0, column - 1)))
    }),
  )
})

/** V8's place of the fault, if it gives one; null for valid JSON. */
function positionOf(text: string): number | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    const position = /position (\d+)/.exec((error as Error).message)?.[1]
    return position === undefined ? null : Number(position)
  }
}

/** Throws if V8 finds a fault before the end of the text. */
function parseSoFar(text: string): void {
  const position = positionOf(text)
  assert.ok(position === null || position >= text.trimEnd().length, text)
}
