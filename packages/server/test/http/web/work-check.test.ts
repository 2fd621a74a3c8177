import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workCheck } from '../../../src/http/web/doctor.ts'

const NOW = 1_790_000_000_000
const backlog = (dueSince: number | null) => [
  { kind: 'simulate' as const, items: 2, due: 0, dueSince: null },
  { kind: 'review_issue_record' as const, items: 3, due: dueSince === null ? 0 : 1, dueSince },
]

test('work that no node takes for a minute makes the report not ok, and is named', () => {
  assert.deepEqual(workCheck([], NOW), {
    name: 'background work',
    ok: true,
    detail: '0 waiting or running, 0 of them due',
  })
  assert.equal(workCheck(backlog(null), NOW).detail, '5 waiting or running, 0 of them due')
  assert.equal(workCheck(backlog(NOW - 60_000), NOW).ok, true)
  const late = workCheck(backlog(NOW - 60_001), NOW)
  assert.equal(late.ok, false)
  assert.match(late.detail, /1 of them due; review_issue_record since 20/)
})
