import type { Runtime } from '../delivery/runtime.ts'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const COUNTER_MAX = 0xfff
/** If the clock goes back by less than this, ids keep the last time. If it goes back by more, they follow it. */
const CLOCK_STEP_MS = 10_000
/** One call returns random bytes for hundreds of ids. */
const BLOCK_BYTES = 4_096

export interface Ids {
  /** UUIDv7 (RFC 9562 5.7). The ids of one client always increase, even within a millisecond. */
  uuid(): string
  /** Eight random bytes as hex, the form of an OpenTelemetry span id. */
  span(): string
}

export function createIds({ now, fillRandom }: Pick<Runtime, 'now' | 'fillRandom'>): Ids {
  const block = new Uint8Array(BLOCK_BYTES)
  let used = BLOCK_BYTES
  let lastTime = 0
  let counter = 0
  let stamp = ''

  function begin(time: number, count: number): void {
    const text = time.toString(16).padStart(12, '0')
    stamp = `${text.slice(0, 8)}-${text.slice(8)}-`
    lastTime = time
    counter = count
  }

  function take(size: number): number {
    if (used + size > BLOCK_BYTES) {
      // Use weak random bytes for this id only.
      const isStrong = fillRandom(block) !== false
      used = isStrong ? 0 : BLOCK_BYTES - size
    }
    used += size
    return used - size
  }

  function hex(from: number, to: number): string {
    let text = ''
    for (let at = from; at < to; at++) text += HEX[block[at] as number]
    return text
  }

  return {
    uuid() {
      const at = take(10)
      const time = now()
      if (time > lastTime || time < lastTime - CLOCK_STEP_MS) {
        // Start at random in the lower half of the counter, so that there is room for more ids.
        begin(time, (((block[at] as number) & 7) << 8) | (block[at + 1] as number))
      } else if (counter < COUNTER_MAX) counter++
      else begin(lastTime + 1, 0)
      const version = HEX[0x70 | (counter >> 8)] as string
      const variant = HEX[((block[at + 2] as number) & 0x3f) | 0x80] as string
      const count = HEX[counter & 0xff] as string
      return `${stamp}${version}${count}-${variant}${hex(at + 3, at + 4)}-${hex(at + 4, at + 10)}`
    },
    span() {
      const at = take(8)
      return hex(at, at + 8)
    },
  }
}
