import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { FastifyReply } from 'fastify'
import { fileTime } from '../../domain/web/shown.ts'
import { refuse } from '../web/reply-error.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

export const SNAPSHOT_PREFIX = 'snapshot-'

/** A client that stops reading blocks the next snapshot for at most this long. */
const STALL_MS = 60_000
const CHUNK_BYTES = 256 * 1024

const NO_SNAPSHOT = {
  exists: 'A snapshot with this name already exists',
  unsupported:
    "Back up a database store with the database's own tools: pg_basebackup with log archiving, or pg_dump (docs/operations.md)",
} as const

interface Snapshot {
  file: FileHandle
  bytes: number
  sha256: string
}

export function backupsRoutes({ serve, storage, config, now }: OperatorDeps): void {
  let busy = false

  serve('createBackup', async ({ request, reply, audit }) => {
    if (busy) return refuse('conflict', 'Another backup is in progress')
    busy = true
    try {
      // Audited, because a backup exports all data.
      await storage.appendAudit(audit(request.id))
      return stream(await take(), reply)
    } catch (error) {
      busy = false
      throw error
    }
  })

  async function take(): Promise<Snapshot> {
    const { storeBytes, diskFreeBytes } = storage.gauges()
    if (storeBytes !== null && diskFreeBytes !== null && diskFreeBytes - storeBytes < config.minFreeDisk) {
      throw refuse('storage_full', `A snapshot needs up to ${storeBytes} bytes of disk; ${diskFreeBytes} are free`)
    }
    // If the store was removed, its directory may be missing too.
    const folder = existsSync(config.dataDir) ? config.dataDir : tmpdir()
    const name = path.join(folder, `${SNAPSHOT_PREFIX}${randomUUID()}`)
    try {
      const result = await storage.backup(name)
      if (!result.ok) throw refuse('conflict', NO_SNAPSHOT[result.reason])
      return await digest(await open(name), result.bytes)
    } finally {
      // Deleted at once, so that no crash leaves it behind. The open handle keeps the content readable.
      await rm(name, { force: true })
    }
  }

  function stream({ file, bytes, sha256 }: Snapshot, reply: FastifyReply): FastifyReply {
    const content = file.createReadStream({ start: 0, highWaterMark: CHUNK_BYTES })
    content.once('close', () => (busy = false))
    reply.raw.setTimeout(STALL_MS, () => content.destroy(new Error('the client stopped reading')))
    const name = `tacho-${fileTime(now())}.db`
    return reply
      .headers({
        'content-length': bytes,
        'content-disposition': `attachment; filename="${name}"`,
        // RFC 9530
        'repr-digest': `sha-256=:${sha256}:`,
      })
      .type(OPERATOR_ROUTES.createBackup.replyType)
      .send(content)
  }
}

async function digest(file: FileHandle, bytes: number): Promise<Snapshot> {
  try {
    const hash = createHash('sha256')
    const content = file.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK_BYTES })
    for await (const chunk of content as AsyncIterable<Buffer>) hash.update(chunk)
    return { file, bytes, sha256: hash.digest('base64') }
  } catch (error) {
    await file.close()
    throw error
  }
}
