/** Each act declares the queries that it makes stale, by words in their keys. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { QueryClient } from '@tanstack/react-query'
import { api, endedCalls } from '../src/web/api.ts'
import { renewStale } from '../src/web/queries.ts'
import { MAKE_ALL_STALE, STALE } from '../src/web/stale.ts'

const SRC = path.join(import.meta.dirname, '../src')
const SOURCES = globSync('**/*.{ts,tsx}', { cwd: SRC }).map((file) => readFileSync(path.join(SRC, file), 'utf8'))

/** Acts that make no shown data stale, or whose page reads the data again by itself. */
const NOTHING_STALE = new Set([
  'decideApproval',
  'decideApprovals',
  'createSimulation',
  'cancelSimulation',
  'testAlert',
  'createErasure',
  'previewErasure',
  'findErasableSteps',
  'openSlackLink',
  'openInvitation',
  'acceptInvitation',
  'signIn',
  'signInWithCode',
  'signInWithRecoveryCode',
])

test('every act of the console says what it makes stale', () => {
  const routes = new Map<string, { method: string }>(Object.entries(OPERATOR_ROUTES))
  const called = new Set(SOURCES.flatMap((text) => [...text.matchAll(/\bapi\.(\w+)\(/g)].map(([, name = '']) => name)))
  const declared = new Set<string>([...Object.values(STALE).flat(), ...MAKE_ALL_STALE, ...NOTHING_STALE])
  const changing = [...called].filter((name) => routes.has(name) && routes.get(name)?.method !== 'GET')
  assert.ok(changing.length > 60)
  assert.deepEqual(
    changing.filter((name) => !declared.has(name)),
    [],
  )
})

test('every word that an act makes stale begins the key of a query', () => {
  const text = SOURCES.join('\n')
  const missing = Object.keys(STALE).filter(
    (word) => !new RegExp(`(?:[kK]ey\\w*: |=> |= )\\['${word}'[,\\]]`).test(text),
  )
  assert.deepEqual(missing, [])
})

test('what an act made stale is read again once, and nothing else', async () => {
  const cache = new QueryClient()
  const [list, policy] = [
    ['issues', 'e', 'list'],
    ['policies', 'w'],
  ]
  for (const key of [list, policy]) cache.setQueryData(key, 1)
  const areStale = () => [list, policy].map((key) => cache.getQueryState(key)?.isInvalidated)
  const renewAfter = async (...names: string[]) => {
    for (const name of names) endedCalls.add(name)
    await renewStale(cache)
  }
  await renewAfter('readIssue', 'testAlert')
  assert.deepEqual(areStale(), [false, false])
  await renewAfter('resolveIssue')
  assert.deepEqual(areStale(), [true, false])
  cache.setQueryData(list, 2)
  await renewAfter()
  assert.deepEqual(areStale(), [false, false])
  await renewAfter('setPrice')
  assert.deepEqual(areStale(), [true, true])
})

test('a call that was refused is over too', async () => {
  await assert.rejects(api.resolveIssue({ params: { environmentId: '', issueId: '' } }))
  assert.ok(endedCalls.has('resolveIssue'))
})
