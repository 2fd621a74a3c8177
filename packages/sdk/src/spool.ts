/**
 * Keeps queued events in files until delivery. Node, Bun and Deno only; loaded when an option asks for it.
 *
 * Each process appends to its own segments. The operating system has an event once `append` returns. The event then
 * survives the end of the process, including SIGKILL, but not a power failure. A segment is deleted when all its events
 * are delivered, rejected or dropped. The next process takes over the segments of dead ones. It sends events again that
 * were already delivered, under the same ids, and the service ignores the duplicates.
 */
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import type { Diagnostics } from './diagnostics.ts'
import { PROTECTED_TYPES } from './event.ts'
import type { Settings } from './options.ts'
import type { QueuedEvent } from './queue.ts'
import type { Runtime, Timer } from './runtime.ts'
import type { Keeper, Sender } from './sender.ts'
import { byteLength } from './text.ts'
import type { Ids } from './uuid.ts'

interface SpoolSettings {
  readonly folder: string
  /** Limit for all segments of this process. Past it, the oldest segment is deleted. */
  readonly maxBytes: number
  readonly newId: () => string
}

interface Parts {
  readonly settings: Settings
  readonly runtime: Runtime
  readonly ids: Ids
  readonly diagnostics: Diagnostics
  readonly sender: Sender
}

/** How often a client looks for segments of dead processes. */
const RECOVER_MS = 60_000

const SEGMENT_BYTES = 1_048_576
/** How often a segment's owner shows that it is alive. */
const HEARTBEAT_MS = 15_000
/** A segment untouched for this long has no owner. */
const STALE_MS = 60_000
/** Two start times measured for one process differ by less. */
const START_SPREAD_MS = 5_000
const SUFFIX = '.events'

interface Segment {
  readonly file: string
  readonly descriptor: number
  bytes: number
  pending: number
  isSealed: boolean
}

/** Segment files that this process owns, across its clients. */
const owned = new Set<string>()
const startedAt = Math.round(Date.now() - process.uptime() * 1_000)
const host = hostname().replace(/[^\w-]/g, '-')

/** Stores what the sender queues in the folder, and queues the events that dead processes left there. */
export function openSpool(folder: string, { settings, runtime, ids, diagnostics, sender }: Parts): void {
  const spool = new Spool({ folder, maxBytes: settings.maxQueuedBytes * 2, newId: ids.uuid }, runtime, diagnostics)
  sender.keepIn(spool)
  // Half of the queue stays free for new events.
  const hasRoom = (bytes: number) => sender.held.queuedBytes + bytes <= settings.maxQueuedBytes / 2

  function recover(): void {
    for (const events of spool.recover(hasRoom)) {
      diagnostics.count('recorded', events.length)
      diagnostics.count('recovered', events.length)
      for (const { eventId, eventType, json } of events) {
        const sequence = sender.nextSequence()
        const isProtected = PROTECTED_TYPES.has(eventType)
        sender.add({ eventId, json, bytes: byteLength(json), isProtected, sequence, attempts: 0, isSpooled: true })
      }
    }
    runtime.timer(RECOVER_MS, () => sender.isOpen && recover())
  }
  recover()
}

class Spool implements Keeper {
  readonly #settings: SpoolSettings
  readonly #runtime: Runtime
  readonly #diagnostics: Diagnostics
  readonly #segments = new Set<Segment>()
  readonly #segmentOf = new Map<string, Segment>()
  #current: Segment | undefined
  #heartbeat: Timer | undefined
  #hasFailed = false

  /** Creates the folder. Never throws: disk errors are reported, and recording continues without the spool. */
  constructor(settings: SpoolSettings, runtime: Runtime, diagnostics: Diagnostics) {
    this.#settings = settings
    this.#runtime = runtime
    this.#diagnostics = diagnostics
    this.#attempt(() => fs.mkdirSync(settings.folder, { recursive: true, mode: 0o700 }))
  }

  /** Stores an event before it is queued. */
  append(event: QueuedEvent): void {
    this.#attempt(() => {
      const segment = (this.#current ??= this.#open())
      segment.bytes += fs.writeSync(segment.descriptor, `${event.json}\n`)
      segment.pending++
      this.#segmentOf.set(event.eventId, segment)
      if (segment.bytes >= SEGMENT_BYTES) this.#seal(segment)
    })
  }

  /** Forgets events that are delivered, rejected or dropped. */
  finish(events: readonly QueuedEvent[]): void {
    for (const { eventId } of events) {
      const segment = this.#segmentOf.get(eventId)
      if (!segment) continue
      this.#segmentOf.delete(eventId)
      segment.pending--
      if (segment.pending === 0) this.#attempt(() => this.#empty(segment))
    }
  }

  /** The events of dead processes, one segment per step, while there is room for `bytes`. */
  *recover(hasRoom: (bytes: number) => boolean): Generator<RecoveredEvent[]> {
    for (const name of this.#attempt(() => fs.readdirSync(this.#settings.folder).sort()) ?? []) {
      const file = path.join(this.#settings.folder, name)
      const events = this.#attempt(() => this.#takeOver(file, name, hasRoom))
      if (events && events.length > 0) yield events
    }
  }

  /** Leaves undelivered events for the next process. */
  close(): void {
    this.#heartbeat?.cancel()
    for (const { descriptor, file } of this.#segments) {
      this.#attempt(() => fs.closeSync(descriptor))
      owned.delete(file)
    }
    this.#segments.clear()
    this.#segmentOf.clear()
    this.#hasFailed = true
  }

  #open(): Segment {
    const name = [host, process.pid, startedAt, this.#settings.newId()].join('.')
    const segment = this.#add(path.join(this.#settings.folder, `${name}${SUFFIX}`), 'ax')
    this.#heartbeat ??= this.#beat()
    const segments = [...this.#segments]
    for (let total = segments.reduce((sum, { bytes }) => sum + bytes, 0); total > this.#settings.maxBytes;) {
      const oldest = segments.shift()
      if (!oldest || oldest === segment) break
      total -= oldest.bytes
      this.#remove(oldest)
      this.#diagnostics.report('warning', 'spool_full', 'The spool is full: its oldest events are now only in memory.')
    }
    return segment
  }

  #add(file: string, flags: string): Segment {
    const descriptor = fs.openSync(file, flags, 0o600)
    const segment = { file, descriptor, bytes: fs.fstatSync(descriptor).size, pending: 0, isSealed: false }
    owned.add(file)
    this.#segments.add(segment)
    return segment
  }

  #seal(segment: Segment): void {
    segment.isSealed = true
    this.#current = undefined
    if (segment.pending === 0) this.#remove(segment)
  }

  #empty(segment: Segment): void {
    if (segment.isSealed) return this.#remove(segment)
    fs.ftruncateSync(segment.descriptor, 0)
    segment.bytes = 0
  }

  #remove(segment: Segment): void {
    this.#segments.delete(segment)
    owned.delete(segment.file)
    fs.closeSync(segment.descriptor)
    fs.rmSync(segment.file, { force: true })
  }

  #takeOver(file: string, name: string, hasRoom: (bytes: number) => boolean): RecoveredEvent[] {
    if (!name.endsWith(SUFFIX) || owned.has(file)) return []
    // Only plain files: a link or a pipe in a shared folder could name anything.
    const stats = fs.lstatSync(file)
    if (!stats.isFile()) return []
    if (!isOrphan(name, this.#runtime.now() - stats.mtimeMs) || !hasRoom(stats.size)) return []
    // If two processes try, one finds the file already renamed.
    const mine = path.join(
      this.#settings.folder,
      [host, process.pid, startedAt, `${this.#settings.newId()}${SUFFIX}`].join('.'),
    )
    fs.renameSync(file, mine)
    const segment = this.#add(mine, 'a')
    segment.isSealed = true
    this.#heartbeat ??= this.#beat()
    const events = fs.readFileSync(mine, 'utf8').split('\n').flatMap(eventOf)
    const torn = events.filter((event) => event === null).length
    if (torn > 0) this.#diagnostics.report('warning', 'spool_damaged', `${torn} events in the spool were unreadable.`)
    const whole = [...new Map(events.flatMap((event) => (event ? [[event.eventId, event] as const] : []))).values()]
    for (const { eventId } of whole) this.#segmentOf.set(eventId, segment)
    segment.pending = whole.length
    if (whole.length === 0) this.#remove(segment)
    return whole
  }

  #beat(): Timer {
    return this.#runtime.timer(HEARTBEAT_MS, () => {
      const now = new Date(this.#runtime.now())
      for (const { descriptor } of this.#segments) this.#attempt(() => fs.futimesSync(descriptor, now, now))
      this.#heartbeat = this.#beat()
    })
  }

  /** Undefined if the disk fails; then the spool is not used. */
  #attempt<T>(act: () => T): T | undefined {
    if (this.#hasFailed) return undefined
    try {
      return act()
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // Another process was faster.
      if (code === 'ENOENT') return undefined
      this.#hasFailed = true
      this.#diagnostics.report(
        'error',
        'spool_failed',
        `The spool cannot be used (${code}): events are only in memory.`,
      )
      return undefined
    }
  }
}

interface RecoveredEvent {
  readonly eventId: string
  readonly eventType: string
  readonly json: string
}

/** Null for a line that is not an event: the last line of a process that died while writing. */
function eventOf(line: string): (RecoveredEvent | null)[] {
  if (line === '') return []
  try {
    const { eventId, eventType } = JSON.parse(line) as Partial<RecoveredEvent>
    return [typeof eventId === 'string' && typeof eventType === 'string' ? { eventId, eventType, json: line } : null]
  } catch {
    return [null]
  }
}

/** Whether the process in a segment's name is dead. */
function isOrphan(name: string, ageMs: number): boolean {
  if (ageMs > STALE_MS) return true
  const [owner, pid, started] = name.split('.')
  if (owner !== host) return false
  // In a container, every main process has the same pid.
  if (Number(pid) === process.pid) return Math.abs(Number(started) - startedAt) > START_SPREAD_MS
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
