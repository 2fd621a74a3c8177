import { hash, randomBytes } from 'node:crypto'

export type Random = (size: number) => Uint8Array

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const COUNTER_MAX = 0xfff
const VARIANTS = '89ab'
/**
 * If the clock goes back by less than this, new ids keep the old time until the clock catches up. After a larger step,
 * they use the new time.
 */
const CLOCK_STEP_MS = 10_000

let lastTime = 0
let counter = 0

export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/**
 * UUIDv7 (RFC 9562 5.7) for the time `now` in milliseconds. Ids of one process always increase, even within a
 * millisecond: the twelve bits after the time are a counter that starts at random below half its range (6.2, method 1).
 */
export function uuidv7(now: number, random: Random = randomBytes): string {
  const bytes = Buffer.from(random(16))
  const next = counter + 1
  if (now > lastTime || now < lastTime - CLOCK_STEP_MS) {
    lastTime = now
    counter = bytes.readUInt16BE(6) & (COUNTER_MAX >> 1)
  } else if (next > COUNTER_MAX) {
    lastTime += 1
    counter = 0
  } else {
    counter = next
  }
  bytes.writeUIntBE(lastTime, 0, 6)
  bytes.writeUInt16BE(0x7000 | counter, 6)
  return format(bytes)
}

/** The smallest UUIDv7 of a time: ids made earlier are smaller. */
export function uuidv7At(time: number): string {
  const hex = Math.max(0, time).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}

/** RFC 9562 5.9. No row has this id, and it sorts before every other. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** RFC 9562 5.5. Must be fast, because a page of events computes hundreds. */
export function uuidv5(namespace: string, name: string): string {
  const input = Buffer.allocUnsafe(16 + Buffer.byteLength(name))
  input.write(namespace.replaceAll('-', ''), 'hex')
  input.write(name, 16)
  const hex = hash('sha1', input)
  const variant = VARIANTS[Number.parseInt(hex.charAt(16), 16) & 3]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function format(bytes: Buffer): string {
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
