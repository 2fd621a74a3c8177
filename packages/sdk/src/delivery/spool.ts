/**
 * Stores undelivered items in files. Only in Node, Bun and Deno; loaded if an option asks for it.
 *
 * Each process appends lines to its own segments. The operating system has a line once `append` returns. The line then
 * survives the end of the process, including SIGKILL, but not a power failure. A segment is deleted when all its lines
 * are delivered, rejected or dropped. A process takes over the segments of dead processes. It may send delivered lines
 * again: they have the same ids, and the service ignores the duplicates.
 */
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import type { Diagnostics } from './diagnostics.ts'
import type { Runtime, Timer } from './runtime.ts'
import type { Ids } from '../recording/uuid.ts'

/** A line: JSON without a line break. */
export interface Kept {
  readonly id: string
  readonly json: string
}

/** Stores the items of a queue until they are delivered, rejected or dropped. */
export interface Keeper {
  append(item: Kept): void
  finish(items: readonly Kept[]): void
  close(): void
}

export interface SpoolUser<Fields> {
  readonly suffix: string
  isOpen(): boolean
  /** Half of the queue stays free for new items. */
  hasRoom(): boolean
  keepIn(keeper: Keeper): void
  /** Undefined if the line is not an item. */
  idOf(fields: Partial<Fields>): string | undefined
  /** Queues an item that a dead process left. */
  restore(item: Restored<Fields>): void
}

export interface Restored<Fields> extends Kept {
  readonly fields: Partial<Fields>
}

export interface SpoolParts {
  readonly settings: { readonly spool?: string | undefined; readonly maxQueuedBytes: number }
  readonly runtime: Runtime
  readonly ids: Ids
  readonly diagnostics: Diagnostics
}

/** How often a client looks for segments of dead processes. */
const RECOVER_MS = 60_000

const SEGMENT_BYTES = 1_048_576
/** Maximum size of a segment. A line that begins before `SEGMENT_BYTES` may end behind it. */
const FILE_BYTES_MAX = 2 * SEGMENT_BYTES
const SLICE_BYTES = 65_536
/** Lines of a slice that are queued before the host's code runs. */
const LINES_PER_TURN = 100
/** How often a segment's owner shows that it is alive. */
const HEARTBEAT_MS = 15_000
/** A segment untouched for this long has no owner. */
const STALE_MS = 60_000
/** Two start times measured for one process differ by less. */
const START_SPREAD_MS = 5_000

interface Segment {
  readonly file: string
  readonly descriptor: number
  bytes: number
  /** Undelivered lines, plus one while the segment is being read. */
  pending: number
  isSealed: boolean
}

/** Segment files that this process owns, across its clients. */
const owned = new Set<string>()
const startedAt = Math.round(Date.now() - process.uptime() * 1_000)
let hostName: string | undefined
/** Deno asks for a permission, so this is read only if a spool is used. */
const host = () => (hostName ??= hostname().replace(/[^\w-]/g, '-'))
const { O_APPEND, O_RDWR } = fs.constants
/** How a segment's name begins: host, number and start of its process, and an id. Other files in the folder are the user's own. */
const NAME = /^[\w-]*\.\d{1,10}\.\d{1,16}\.[\w-]+$/
/** Refuses links. Windows has no such flag. */
const NO_LINKS = (fs.constants as { O_NOFOLLOW?: number }).O_NOFOLLOW ?? 0

/** Resolves when the user has the items of dead processes, or is full. */
export async function openSpool<Fields>(folder: string, user: SpoolUser<Fields>, parts: SpoolParts): Promise<void> {
  const { runtime } = parts
  if (!user.isOpen()) return
  const spool = new Spool(folder, user, parts)
  user.keepIn(spool)
  let lines = spool.recover()

  async function recover(): Promise<void> {
    for (let line = 1; user.isOpen() && user.hasRoom(); line++) {
      const { done, value } = lines.next()
      if (done) {
        lines = spool.recover()
        break
      }
      if (value) user.restore(value)
      if (line % LINES_PER_TURN === 0) await new Promise<void>((resolve) => runtime.soon(resolve))
    }
    runtime.timer(RECOVER_MS, () => void (user.isOpen() && recover()))
  }
  // The constructor of a client must not read files of other processes.
  await new Promise<void>((resolve) => runtime.soon(resolve))
  await recover()
}

class Spool<Fields> implements Keeper {
  readonly #folder: string
  readonly #user: SpoolUser<Fields>
  readonly #parts: SpoolParts
  readonly #segments = new Set<Segment>()
  readonly #segmentOf = new Map<string, Segment>()
  #current: Segment | undefined
  #heartbeat: Timer | undefined
  #hasFailed = false
  /** Events that had no room in the queue. They leave the spool too. */
  #dropped: number | undefined

  /** Never throws: disk errors are reported, and recording continues without the spool. */
  constructor(folder: string, user: SpoolUser<Fields>, parts: SpoolParts) {
    this.#folder = folder
    this.#user = user
    this.#parts = parts
    this.#attempt(() => fs.mkdirSync(folder, { recursive: true, mode: 0o700 }))
  }

  append({ id, json }: Kept): void {
    this.#attempt(() => {
      // The host may record its own id twice. The service keeps the first one.
      if (this.#segmentOf.has(id)) return
      const segment = (this.#current ??= this.#open())
      const line = Buffer.from(`${json}\n`)
      // Writes all of it, or throws.
      fs.writeFileSync(segment.descriptor, line)
      segment.bytes += line.length
      segment.pending++
      this.#segmentOf.set(id, segment)
      if (segment.bytes >= SEGMENT_BYTES) this.#seal(segment)
    })
  }

  finish(items: readonly Kept[]): void {
    const dropped = this.#parts.diagnostics.counters({ queued: 0, queuedBytes: 0 }).dropped.queue_full
    if (dropped !== this.#dropped) this.#tell('full')
    this.#dropped = dropped
    for (const { id } of items) {
      const segment = this.#segmentOf.get(id)
      if (!segment) continue
      this.#segmentOf.delete(id)
      this.#release(segment)
    }
  }

  /** Undefined for a line that is not an item or is a duplicate. */
  *recover(): Generator<Restored<Fields> | undefined> {
    for (const name of this.#attempt(() => fs.readdirSync(this.#folder).sort()) ?? []) {
      const segment = this.#takeOver(name)
      if (!segment) continue
      let torn = 0
      for (const line of this.#linesOf(segment)) {
        const item = this.#itemOf(line)
        if (!item) torn++
        if (!item || this.#segmentOf.has(item.id)) {
          yield undefined
          continue
        }
        this.#segmentOf.set(item.id, segment)
        segment.pending++
        yield item
      }
      if (torn > 0) this.#report('spool_damaged', `${torn} lines in the spool were unreadable.`)
      this.#release(segment)
    }
  }

  /** Leaves undelivered items to the next client, also of this process: a segment with the time 0 has no owner. */
  close(): void {
    this.#heartbeat?.cancel()
    for (const { descriptor, file } of this.#segments) {
      this.#attempt(() => fs.futimesSync(descriptor, 0, 0))
      this.#attempt(() => fs.closeSync(descriptor))
      owned.delete(file)
    }
    this.#segments.clear()
    this.#segmentOf.clear()
    this.#hasFailed = true
  }

  #open(): Segment {
    const segment = this.#add(this.#newFile(), 'ax')
    const segments = [...this.#segments]
    const maxBytes = this.#parts.settings.maxQueuedBytes * 2
    for (let total = segments.reduce((sum, { bytes }) => sum + bytes, 0); total > maxBytes;) {
      const oldest = segments.shift()
      if (!oldest || oldest === segment) break
      total -= oldest.bytes
      this.#remove(oldest)
      this.#tell('full')
      this.#report('spool_full', 'The spool is full: its oldest items are now only in memory.')
    }
    return segment
  }

  #newFile(): string {
    const name = [host(), process.pid, startedAt, this.#parts.ids.uuid()].join('.')
    return path.join(this.#folder, `${name}${this.#user.suffix}`)
  }

  #add(file: string, flags: string | number): Segment {
    const descriptor = fs.openSync(file, flags, 0o600)
    const segment = { file, descriptor, bytes: fs.fstatSync(descriptor).size, pending: 0, isSealed: false }
    owned.add(file)
    this.#segments.add(segment)
    this.#heartbeat ??= this.#beat()
    return segment
  }

  #seal(segment: Segment): void {
    segment.isSealed = true
    this.#current = undefined
    if (segment.pending === 0) this.#remove(segment)
  }

  #release(segment: Segment): void {
    segment.pending--
    if (segment.pending > 0 || !this.#segments.has(segment)) return
    this.#attempt(() => {
      if (segment.isSealed) return this.#remove(segment)
      fs.ftruncateSync(segment.descriptor, 0)
      segment.bytes = 0
    })
  }

  #remove(segment: Segment): void {
    this.#segments.delete(segment)
    owned.delete(segment.file)
    fs.closeSync(segment.descriptor)
    fs.rmSync(segment.file, { force: true })
  }

  /** Leaves everything but segments of dead processes alone. */
  #takeOver(name: string): Segment | undefined {
    const file = path.join(this.#folder, name)
    const { suffix } = this.#user
    const isSegment = name.endsWith(suffix) && NAME.test(name.slice(0, -suffix.length))
    if (!isSegment || owned.has(file) || this.#hasFailed) return undefined
    try {
      // Read only plain files: a link or a pipe in a shared folder could name anything.
      const stats = fs.lstatSync(file)
      if (!stats.isFile() || !isOrphan(name, this.#parts.runtime.now() - stats.mtimeMs)) return undefined
      if (!isOurs(stats) || stats.size > FILE_BYTES_MAX) {
        this.#report('spool_skipped', 'A file in the spool was left alone: it belongs to another user or is too large.')
        return undefined
      }
      const mine = this.#newFile()
      // If two processes try, one finds the file already renamed.
      fs.renameSync(file, mine)
      const segment = this.#add(mine, O_RDWR | O_APPEND | NO_LINKS)
      this.#showAlive(segment)
      segment.isSealed = true
      segment.pending = 1
      return segment
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT') this.#report('spool_skipped', `A file in the spool was left alone (${code}).`)
      return undefined
    }
  }

  *#linesOf({ descriptor, bytes }: Segment): Generator<string> {
    const buffer = Buffer.alloc(SLICE_BYTES)
    const decoder = new TextDecoder()
    let restOfFile = ''
    for (let at = 0; at < bytes;) {
      const read = this.#attempt(() => fs.readSync(descriptor, buffer, 0, SLICE_BYTES, at)) ?? 0
      if (read === 0) break
      at += read
      const lines = (restOfFile + decoder.decode(buffer.subarray(0, read), { stream: true })).split('\n')
      restOfFile = lines.pop() ?? ''
      yield* lines
    }
    if (restOfFile !== '') yield restOfFile
  }

  /** Undefined for an incomplete line: its process died while writing. */
  #itemOf(json: string): Restored<Fields> | undefined {
    try {
      const fields = JSON.parse(json) as Partial<Fields>
      const id = this.#user.idOf(fields)
      return id === undefined ? undefined : { id, json, fields }
    } catch {
      return undefined
    }
  }

  #beat(): Timer {
    const { runtime } = this.#parts
    return runtime.timer(HEARTBEAT_MS, () => {
      for (const segment of this.#segments) this.#showAlive(segment)
      this.#heartbeat = this.#beat()
    })
  }

  #showAlive({ descriptor }: Segment): void {
    const now = new Date(this.#parts.runtime.now())
    this.#attempt(() => fs.futimesSync(descriptor, now, now))
  }

  /** Undefined if the disk fails. From then on, the spool is not used. */
  #attempt<T>(act: () => T): T | undefined {
    if (this.#hasFailed) return undefined
    try {
      return act()
    } catch (error) {
      this.#hasFailed = true
      this.#tell('failed')
      const { code } = error as NodeJS.ErrnoException
      const message = `The spool cannot be used (${code}): what is recorded is only in memory.`
      this.#parts.diagnostics.report('error', 'spool_failed', message)
      return undefined
    }
  }

  /** Reports a problem to the service, with the next delivery. */
  #tell(trouble: 'full' | 'failed'): void {
    const { diagnostics } = this.#parts
    if (trouble === 'failed' || !diagnostics.headers) diagnostics.headers = { 'x-tacho-spool': trouble }
  }

  #report(code: string, message: string): void {
    this.#parts.diagnostics.report('warning', code, message)
  }
}

/** Whether this user wrote the file. We must not send files of others in a shared folder with our key. */
function isOurs({ uid }: fs.Stats): boolean {
  return typeof process.getuid !== 'function' || uid === process.getuid()
}

function isOrphan(name: string, ageMs: number): boolean {
  if (ageMs > STALE_MS) return true
  const [owner, pid, started] = name.split('.')
  if (owner !== host()) return false
  // In a container, every main process has the same pid.
  if (Number(pid) === process.pid) return Math.abs(Number(started) - startedAt) > START_SPREAD_MS
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
