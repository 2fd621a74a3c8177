/** The alignment of two runs: which steps are paired. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { align, type AlignedStep, type Alignment } from '../src/runs/compare/align.ts'
import { wordsOf } from '../src/runs/compare/compared-texts.ts'

const TYPES = { U: 'USER_INPUT', M: 'LLM_CALL', T: 'TOOL_CALL', S: 'AGENT_STEP', E: 'SESSION_OUTCOME' } as const

/** `U Hello` is a step in which the user says hello. */
const run = (...steps: string[]): AlignedStep[] =>
  steps.map((text) => ({ eventType: TYPES[text[0] as keyof typeof TYPES], label: text.slice(2) }))

const pairs = ({ places }: Alignment) => places.map(({ a, b }) => `${a ?? '-'}${b ?? '-'}`).join(' ')

/** Asserts that the alignment contains each step of both runs once, in order. */
function assertWhole({ places }: Alignment, a: number, b: number): void {
  const of = (side: 'a' | 'b') => places.flatMap((place) => place[side] ?? [])
  assert.deepEqual(of('a'), [...Array(a).keys()])
  assert.deepEqual(of('b'), [...Array(b).keys()])
}

describe('alignment', () => {
  test('a chat in other words is aligned by who speaks', () => {
    const a = run('U Hi, cancel my flight', 'M May I have your id?', 'U It is mia', 'M Done', 'E COMPLETED')
    const b = run('U Hello! A refund, please', 'M Who are you?', 'U mia', 'M Not possible', 'E FAILED')
    assert.equal(pairs(align(a, b)), '00 11 22 33 44')
  })

  test('tools anchor what is said around them, also when a run takes a turn more', () => {
    const a = run('U Hi', 'M get_order', 'T get_order', 'M refund', 'T refund', 'M Done')
    const b = run('U Hi', 'M Which?', 'U This one', 'M get_order', 'T get_order', 'M No', 'E FAILED')
    assert.equal(pairs(align(a, b)), '00 -1 -2 13 24 3- 4- 55 -6')
  })

  test('what is named otherwise in the same place stands side by side, but not calls of different tools', () => {
    const [a, b] = [run('S plan', 'S search', 'S write'), run('S plan', 'S browse', 'S write')]
    assert.equal(pairs(align(a, b)), '00 11 22')
    const [one, other] = [run('M one', 'T search', 'M two'), run('M one', 'T refund', 'M two')]
    assert.equal(pairs(align(one, other)), '00 1- -1 22')
    const more = run('T refund', 'T mail', 'T refund', 'T close')
    assert.equal(pairs(align(run('T search', 'T refund', 'T close'), more)), '0- 10 -1 -2 23')
    assert.equal(pairs(align(run('T one'), run('U hi'))), '0- -0')
    assert.equal(pairs(align([], run('U hi'))), '-0')
  })

  test('two runs of 30,000 steps are aligned, and it is said how far', () => {
    const steps = (seed: number) =>
      Array.from({ length: 30_000 }, (_, at) =>
        at % 3 === 0 ? `M said ${seed} ${at}` : `T tool_${(at * (at % 100 === seed ? 7 : 1)) % 40}`,
      )
    const told: number[] = []
    const found = align(run(...steps(1)), run(...steps(2)), (part) => told.push(part))
    assertWhole(found, 30_000, 30_000)
    assert.equal(found.isRough, false)
    const alone = found.places.filter(({ a, b }) => a === null || b === null).length
    assert.ok(alone < 1_500, `${alone} alone`)
    assert.ok(told.every((part, at) => part > (told[at - 1] ?? 0) && part < 1))
    assert.ok(told.length > 1_000)
  })

  test('runs with nothing in common end in time, by position', () => {
    // All labels differ, and the types are in another order.
    const a = run(...Array.from({ length: 2_000 }, (_, at) => `${at % 2 ? 'S' : 'T'} a${at}`))
    const b = run(...Array.from({ length: 1_500 }, (_, at) => `${at % 3 ? 'T' : 'S'} b${at}`))
    assertWhole(align(a, b), 2_000, 1_500)
  })
})

test('words that one text has alone are marked, and both texts stay whole', () => {
  const [one, other] = ['Refund 50 euros\nto Mia', 'Refund 5000 euros\nto Mia, now']
  const words = wordsOf(one, other)
  assert.ok(words)
  const own = (side: 'a' | 'b') => words[side].flatMap(({ text, isOwn }) => (isOwn ? [text] : []))
  assert.equal(words.a.map(({ text }) => text).join(''), one)
  assert.equal(words.b.map(({ text }) => text).join(''), other)
  assert.deepEqual(own('a'), ['50'])
  assert.deepEqual(own('b'), ['5000', ', now'])
  const random = (seed: number) => Array.from({ length: 20_000 }, (_, at) => `w${(at * seed) % 9_973}`).join(' ')
  assert.equal(wordsOf(random(7), random(13)), null)
})
