/** The directory of an open store is removed, or another file takes its place. */
import assert from 'node:assert/strict'
import { copyFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { eventually } from '../../setup/eventually.ts'
import { event, startService } from '../../setup/service.ts'
import { temporaryDirectory } from './temporary.ts'

interface Problem {
  code: string
  detail: string
}

test('a server whose data directory is removed says so, refuses events, and a backup saves what it has', async (t) => {
  const service = await startService()
  let isOpen = true
  t.after(async () => {
    if (isOpen) await service.close().catch(() => undefined)
  })
  assert.equal((await service.record([event({ runId: 'saved' })])).status, 200)
  rmSync(service.directory, { recursive: true })
  const { body } = await eventually(async () => {
    const answer = await service.call<Problem>('/readyz')
    return answer.status === 503 ? answer : null
  }, 'the end of readiness')
  assert.deepEqual(
    [body.code, body.detail],
    ['storage_unavailable', 'The file of the store was removed while it was open'],
  )
  const late = event()
  assert.deepEqual((await service.record([late])).body.retryableEventIds, [late['eventId']])
  const { text: metrics } = await service.call('/metrics')
  for (const line of [/^tacho_store_writable 0$/m, /^tacho_store_disk_free_bytes \d/m, /^tacho_store_size_bytes \d/m]) {
    assert.match(metrics, line)
  }
  const { body: report } = await service.operator<{ checks: { name: string; ok: boolean; detail: string }[] }>(
    '/doctor',
  )
  assert.match(report.checks.find(({ name }) => name === 'file')?.detail ?? '', /was removed.*tacho backup/)

  const backup = await fetch(`${service.url}/operator/v1/backups`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.operatorToken}` },
  })
  assert.equal(backup.status, 200)
  const db = new Database(Buffer.from(await backup.arrayBuffer()))
  assert.deepEqual(db.prepare('SELECT run_id FROM runs').pluck().all(), ['saved'])
  db.close()
  isOpen = false
  await service.close().catch((error: NodeJS.ErrnoException) => assert.equal(error.code, 'ENOENT'))
})

test('another file in the place of the store ends readiness', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const file = path.join(service.directory, 'tacho.db')
  const copy = path.join(temporaryDirectory(t), 'copy.db')
  copyFileSync(file, copy)
  rmSync(file)
  copyFileSync(copy, `${file}.new`)
  renameSync(`${file}.new`, file)
  await eventually(
    async () => /took the place/.test((await service.call<Problem>('/readyz')).body.detail ?? ''),
    'the reason',
  )
})
