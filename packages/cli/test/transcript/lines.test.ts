import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { lines, type Line } from '../../src/engine/files.ts'

async function read(chunks: Uint8Array[], longest = 1_000): Promise<(string | null)[]> {
  const found: Line[] = []
  const stream = (async function* () {
    yield* chunks
  })()
  for await (const line of lines(stream, longest)) found.push(line)
  assert.deepEqual(
    found.map(({ number }) => number),
    found.map((_, index) => index + 1),
  )
  return found.map((line) => ('bytes' in line ? line.bytes.toString() : null))
}

test('lines end with LF or CRLF, and the last one needs no end', async () => {
  assert.deepEqual(await read([Buffer.from('a\nb\r\n\nc')]), ['a', 'b', '', 'c'])
  assert.deepEqual(await read([Buffer.from('a\n')]), ['a'])
  assert.deepEqual(await read([]), [])
})

test('a line of the allowed length is read, and one byte more is skipped', async () => {
  assert.deepEqual(await read([Buffer.from('12345\n123456\n1\n')], 5), ['12345', null, '1'])
  assert.deepEqual(await read([Buffer.from('1234'), Buffer.from('56789'), Buffer.from('0\nx')], 5), [null, 'x'])
})

test('chunk boundaries make no difference', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: 'grapheme' })), fc.integer({ min: 1, max: 7 }), async (texts, size) => {
      const clean = texts.map((text) => text.replaceAll(/[\r\n]/g, ''))
      const bytes = Buffer.from(clean.map((text) => `${text}\n`).join(''))
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      )
      assert.deepEqual(await read(chunks), clean)
    }),
  )
})
