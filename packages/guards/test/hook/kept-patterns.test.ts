import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { compileProgram, COMPILER } from '@tacho/policy/program.ts'
import { openKeptPatterns } from '../../src/hook/kept-patterns.ts'

const ACCOUNT = { url: 'http://localhost:4680', apiKey: 'tacho_key' }
const PATTERNS = ['(?i)\\brm\\s+-rf', '[^a-z😀]+ü$', 'k']

let directory: string
let file: string
before(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-patterns-'))
  file = path.join(directory, 'patterns')
})
after(() => rmSync(directory, { recursive: true }))

function keep(sources: readonly string[]): void {
  const patterns = openKeptPatterns(directory, ACCOUNT)
  for (const source of sources) if (!patterns.get(source)) patterns.add(source, compileProgram(source))
  patterns.save()
}

test('the programs of an earlier process are those that it compiled', () => {
  keep(PATTERNS)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const kept = openKeptPatterns(directory, ACCOUNT)
  for (const source of PATTERNS) assert.deepEqual(kept.get(source), compileProgram(source))
  assert.equal(kept.get('another'), undefined)
})

test('a process that compiles nothing writes nothing, and patterns of earlier policies go with the next new one', () => {
  keep(PATTERNS)
  const before = readFileSync(file)
  keep(PATTERNS.slice(1))
  assert.deepEqual(readFileSync(file), before)
  keep(['new', ...PATTERNS.slice(1)])
  const kept = openKeptPatterns(directory, ACCOUNT)
  assert.equal(kept.get(PATTERNS[0] as string), undefined)
  for (const source of ['new', ...PATTERNS.slice(1)]) assert.ok(kept.get(source))
})

test('a file that another wrote, or that is not whole, is not used', () => {
  keep(PATTERNS)
  const whole = readFileSync(file)
  const isUsed = (account = ACCOUNT) => openKeptPatterns(directory, account).get('k') !== undefined
  assert.ok(isUsed())
  assert.ok(!isUsed({ ...ACCOUNT, apiKey: 'another' }))
  assert.ok(!isUsed({ ...ACCOUNT, url: 'http://localhost:4681' }))
  for (const at of [0, 31, 32, 40, whole.length - 1]) {
    const changed = Buffer.from(whole)
    changed[at] = (changed[at] as number) ^ 1
    writeFileSync(file, changed)
    assert.ok(!isUsed(), `byte ${at}`)
  }
  for (const length of [0, 31, 32, 36, whole.length - 4]) {
    writeFileSync(file, whole.subarray(0, length))
    assert.ok(!isUsed(), `${length} bytes`)
  }
  keep(PATTERNS)
  assert.deepEqual(readFileSync(file), whole)
})

test('programs of another version of the library are not used', () => {
  const { dependencies } = JSON.parse(
    readFileSync(path.join(import.meta.dirname, '../../../policy/package.json'), 'utf8'),
  ) as { dependencies: Record<string, string> }
  assert.match(COMPILER, new RegExp(`^@bufbuild/re2 ${dependencies['@bufbuild/re2'] as string}, form \\d+$`))
})
