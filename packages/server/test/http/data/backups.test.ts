import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import Database from 'better-sqlite3'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'

let service: Service
const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-backup-'))
before(async () => {
  service = await startService()
  // More than the buffers of a connection can hold, so that the test sees the backup while it streams.
  const text = 'x'.repeat(200_000)
  for (let sent = 0; sent < 20; sent++) {
    const recorded = await service.record(Array.from({ length: 5 }, () => event({ payload: { text } })))
    assert.equal(recorded.body.accepted, 5)
  }
})
after(async () => {
  rmSync(folder, { recursive: true })
  await service.close()
})

const snapshots = () => readdirSync(service.directory).filter((name) => name.startsWith('snapshot-'))

/** The answer as soon as its headers arrive; the body is unread. */
async function start(): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${service.operatorToken}` }
  const sent = request(`${service.url}/operator/v1/backups`, { method: 'POST', headers }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

/** The answer once the server knows that the last backup has ended, which its reader can know earlier. */
function startNext(): Promise<IncomingMessage> {
  return eventually(async () => {
    const answer = await start()
    if (answer.statusCode === 200) return answer
    await bodyOf(answer)
    return null
  }, 'the next backup')
}

async function bodyOf(answer: IncomingMessage): Promise<Buffer> {
  return Buffer.concat((await answer.toArray()) as Buffer[])
}

test('a backup is a complete store with all acknowledged data, and its digest matches', async () => {
  const answer = await start()
  const body = await bodyOf(answer)
  assert.equal(answer.statusCode, 200)
  assert.equal(answer.headers['content-type'], 'application/vnd.sqlite3')
  assert.equal(Number(answer.headers['content-length']), body.length)
  assert.equal(answer.headers['repr-digest'], `sha-256=:${createHash('sha256').update(body).digest('base64')}:`)
  assert.match(String(answer.headers['content-disposition']), /filename="tacho-[0-9T-]+Z\.db"/)
  const file = path.join(folder, 'copy.db')
  writeFileSync(file, body)
  const db = new Database(file, { readonly: true })
  assert.equal(db.prepare('SELECT COUNT(*) FROM events').pluck().get(), 100)
  db.close()
  assert.deepEqual(snapshots(), [])
})

test('one backup at a time, until the first ends or is cancelled', async () => {
  const first = await startNext()
  assert.deepEqual(refusalOf(await service.operator('/backups', { method: 'POST' })), [409, 'conflict'])
  assert.deepEqual(snapshots(), [], 'nothing lies in the directory while it is streamed')
  first.destroy()
  await once(first, 'close')
  await bodyOf(await startNext())
  assert.deepEqual(snapshots(), [])
})

test('a backup without enough disk space is rejected, and leaves nothing', async () => {
  const full = await startService({ minFreeDisk: '1TiB' })
  try {
    assert.deepEqual(refusalOf(await full.operator('/backups', { method: 'POST' })), [503, 'storage_full'])
    assert.deepEqual(
      readdirSync(full.directory).filter((name) => name.startsWith('snapshot-')),
      [],
    )
  } finally {
    await full.close()
  }
})
