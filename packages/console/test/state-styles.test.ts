/** Each state has one colour, one sign and one word in the whole console, and one place that draws it. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { clock, exact, hourOfDay, minuteOfDay, runName } from '../src/web/text/format.ts'
import { STATES } from '../src/web/text/state-styles.ts'

const SOURCES = path.join(import.meta.dirname, '../src')
const sources = globSync('**/*.{ts,tsx}', { cwd: SOURCES }).map((file) => ({
  file: file.replaceAll(path.sep, '/'),
  text: readFileSync(path.join(SOURCES, file), 'utf8'),
}))

/** Files that may draw states, or types of events, whose colours differ from those of states. */
const DRAWERS = ['web/text/state-styles.ts', 'web/ui/state.tsx', 'web/ui/chip.tsx', 'runs/event-type.tsx']

/** Allowed uses of the signs that are not states: a sentence about the page, a close button, a drawing in a comment. */
const OTHER_SIGNS = new Map([
  ['approvals/decide.tsx', 'the answer to a decision'],
  ['approvals/decide-many.tsx', 'a warning'],
  ['approvals/recorded-input.tsx', 'a check of the input'],
  ['approvals/waiting-count.tsx', 'a switch that is on'],
  ['approvals/waiting-list.tsx', 'a check of the input'],
  ['people/account-page.tsx', 'an act that was done'],
  ['policies/draft-fields.tsx', 'a check of what is typed'],
  ['policies/ready-sets-page.tsx', 'an act that was done'],
  ['record/get-started-page.tsx', 'a step that is done'],
  ['runs/page/inspector.tsx', 'closes it'],
  ['runs/page/run-header.tsx', 'the sentence that says why a run failed'],
  ['runs/page/run-toolbar.tsx', 'ends the zoom'],
  ['web/shell/freshness-line.tsx', 'a sentence about the page'],
])

test('a word is drawn in one way, and a sign has one colour but for ! and ●', () => {
  const looks = Map.groupBy(Object.values(STATES), ([, , word]) => word)
  for (const [word, same] of looks) assert.equal(new Set(same.map(String)).size, 1, word)
  const tones = Map.groupBy(Object.values(STATES), ([, sign]) => sign)
  for (const [sign, same] of tones) {
    if (sign !== '!' && sign !== '●') assert.equal(new Set(same.map(([tone]) => tone)).size, 1, sign)
  }
})

test('nothing else gives a chip a colour, or writes the sign of a state', () => {
  for (const { file, text } of sources) {
    if (DRAWERS.includes(file)) continue
    assert.doesNotMatch(text, /<Chip[^>]*\btone=|: Tone\b|\btype Tone\b/, `${file} draws a state: use State`)
    const hasSign = /[✓✕✗‖↩]|'●'/.test(text)
    assert.equal(hasSign, OTHER_SIGNS.has(file), `${file}: draw states with State or StateText, and list other signs`)
  }
})

test('dates are written by one file, with 24 hours, and a list shows no marks of Markdown', () => {
  // Leave out formats of numbers, and the zone of the browser.
  const writers = sources.filter(({ text }) =>
    /new Intl\.DateTimeFormat|toLocale(Date|Time)String|Date\([^)]*\)\.toLocaleString/.test(text),
  )
  assert.deepEqual(
    writers.map(({ file }) => file),
    ['web/text/format.ts'],
  )
  const time = Date.UTC(2026, 10, 3, 14, 0, 5)
  for (const write of [exact, clock, hourOfDay, minuteOfDay]) assert.doesNotMatch(write(time), /[AP]M/)
  assert.equal(runName({ title: '## A **bold** `code` [link](https://x.y)', runId: 'r' }), 'A bold code link')
  assert.equal(runName({ title: '- first', runId: 'r' }), 'first')
  assert.equal(runName({ title: null, runId: '**r**' }), '**r**')
})

test('types of events have no hue of a state; an error is as red as what failed', () => {
  const text = sources.find(({ file }) => file === 'runs/event-type.tsx')?.text ?? ''
  const types = [...text.matchAll(/'?(\w+)'?[:,] \{ tone: '(\w+)'/g)].map(([, name = '', tone = '']) => [name, tone])
  assert.ok(types.length >= 9)
  const hues = new Set<string>(Object.values(STATES).map(([tone]) => tone))
  hues.delete('plain')
  assert.deepEqual(
    types.filter(([, tone = '']) => hues.has(tone)),
    [['ERROR', 'red']],
  )
})
