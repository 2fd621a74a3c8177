/** Damaged export files: the reader reports the damage, and returns no line after it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { countLine, endLine, markLine, newExportState } from '@tacho/server/domain/data/export-lines.ts'
import fc from 'fast-check'
import { checkedAt, checkedLines, formatOf, readExport } from '../../src/data/export-file.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'tacho-export-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const LINES = exportOf(40)

function exportOf(count: number): string[] {
  const state = newExportState()
  const lines: string[] = []
  const add = (type: string, text: string) => {
    countLine(state, type, text)
    lines.push(text)
  }
  add('export', '{"type":"export","version":1}')
  for (let at = 0; at < count; at++) {
    add('agent', `{"type":"agent","id":"${at}","name":"ä ${'x'.repeat(at)}"}`)
    if (at % 10 === 9) lines.push(markLine(state, { section: 'agent', after: [String(at)] }))
  }
  lines.push(endLine(state))
  return lines
}

const text = (lines: readonly string[]) => Buffer.from(lines.map((line) => `${line}\n`).join(''))

/** The lines that the reader returns, and how the reading ends. */
async function read(name: string, content: Uint8Array): Promise<{ passed: string[]; end: string }> {
  const file = path.join(folder, name)
  writeFileSync(file, content)
  const checked = checkedAt(null)
  const passed: string[] = []
  try {
    const source = readExport(file, formatOf(file), () => undefined)
    for await (const line of checkedLines(source, checked)) passed.push(line.text)
  } catch (error) {
    return { passed, end: (error as Error).message }
  }
  return { passed, end: checked.isComplete ? 'complete' : 'incomplete' }
}

test('a file that ends anywhere is not complete, and its lines are those of the export', async () => {
  const whole = text(LINES)
  assert.deepEqual(await read('whole.jsonl', whole), { passed: LINES, end: 'complete' })
  const files: [string, Buffer][] = [
    ['cut.jsonl', whole],
    ['cut.jsonl.gz', gzipSync(whole)],
    ['cut.jsonl.zst', zstdCompressSync(whole)],
  ]
  for (const [name, content] of files) {
    assert.equal((await read(name, content)).end, 'complete')
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: content.length - 2 }), async (length) => {
        const { passed, end } = await read(name, content.subarray(0, length))
        assert.notEqual(end, 'complete')
        assert.deepEqual(passed, LINES.slice(0, passed.length))
      }),
      { numRuns: 40 },
    )
  }
})

test('a changed, moved, repeated or missing line is found at the next mark', async () => {
  const [one = '', other = ''] = [LINES[5], LINES[6]]
  const damaged: string[][] = [
    LINES.with(5, one.replace('"id":"4"', '"id":"5"')),
    LINES.with(5, other).with(6, one),
    LINES.toSpliced(5, 1),
    LINES.toSpliced(5, 0, one),
    LINES.with(5, `${one} `),
    LINES.with(5, 'no JSON'),
    [...LINES, one],
    LINES.with(-1, LINES.at(-1)?.replace(/[0-9a-f]{64}/, '0'.repeat(64)) ?? ''),
  ]
  for (const lines of damaged) {
    const { passed, end } = await read('damaged.jsonl', text(lines))
    assert.match(end, /^The export is damaged before or in line \d+: its checksum differs\.$/)
    assert.ok(passed.length < lines.length)
  }
})

test('what is no export, or no file of its kind, is refused', async () => {
  assert.match((await read('other.jsonl', text(['{"type":"run"}']))).end, /not an export of Tacho/)
  for (const name of ['garbage.gz', 'garbage.zst']) {
    assert.notEqual((await read(name, Buffer.alloc(1_000, 0x5a))).end, 'complete')
  }
})

test('a line over the bound is refused without being kept', async () => {
  const endless = gzipSync(Buffer.alloc(65 * 1_048_576, 'x'), { level: 1 })
  const { passed, end } = await read('endless.jsonl.gz', Buffer.concat([gzipSync(text(LINES.slice(0, 3))), endless]))
  assert.match(end, /damaged: line 4 is longer than 64 MiB/)
  assert.equal(passed.length, 3)
})
