/** A new event type is found by those who record it: the SDK's editor completions and the page of recording name it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { EVENT_TYPE_WORDS } from '../src/engine/words.ts'

const textOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8')

test('the type of events in the SDK names the known types, and no other', () => {
  const [, union = ''] = /export type EventType =\n([^(]*)/.exec(textOf('packages/sdk/src/recording/event.ts')) ?? []
  const types = [...union.matchAll(/\| '(\w+)'/g)].map(([, name = '']) => name)
  assert.deepEqual(types.toSorted(), [...EVENT_TYPE_WORDS.keys()].toSorted())
})

test('the page of recording says what each known type is for', () => {
  const page = textOf('docs/recording.md')
  const missing = [...EVENT_TYPE_WORDS.keys()].filter((type) => !new RegExp(`\\b${type}\\b`).test(page))
  assert.deepEqual(missing, [])
})
