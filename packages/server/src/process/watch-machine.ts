/**
 * Checks each second whether the machine's clock was set and whether descriptors are used up. Both can stop a server's
 * work while it looks healthy. One line reports the beginning, and one the end.
 */
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import type { FastifyBaseLogger } from 'fastify'
import { every, type Job } from '../jobs/engine/timers.ts'

const EVERY_MS = 1_000
/** A clock that is slewed moves by less, even while this process is busy. */
const JUMP_MS = 2_000

interface Watched {
  log: FastifyBaseLogger | undefined
  /** `ms`: how far the clock was set forward. */
  onJump(ms: number): Promise<unknown>
  intervalMs?: number
}

export function watchMachine({ log, onJump, intervalMs = EVERY_MS }: Watched): Job {
  /** The other clock is monotonic, so nobody can set it. */
  const difference = () => Date.now() - performance.now()
  let last = difference()
  let isExhausted = false

  return every({
    intervalMs,
    onError: (err) => log?.warn({ err }, 'could not plan work anew after the clock was set; it is tried again'),
    async run() {
      lookAtDescriptors()
      const clockDifference = difference()
      const jumpMs = Math.round(clockDifference - last)
      if (Math.abs(jumpMs) < JUMP_MS) return
      log?.warn({ jumpMs }, 'the clock of this machine was set: due work is planned anew')
      await onJump(jumpMs)
      last = clockDifference
    },
  })

  function lookAtDescriptors(): void {
    const isNow = !canOpen()
    if (isNow && !isExhausted)
      log?.error({ limit: maxDescriptors() }, 'no file descriptor is left: connections are refused')
    if (!isNow && isExhausted) log?.info('file descriptors are left again')
    isExhausted = isNow
  }
}

function canOpen(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return true
  } catch (error) {
    return !['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

/** Null if the system does not report it. */
export function openDescriptors(): number | null {
  try {
    return readdirSync('/proc/self/fd').length
  } catch (error) {
    // Listing the folder needs a descriptor too, so there is none left.
    return (error as NodeJS.ErrnoException).code === 'EMFILE' ? maxDescriptors() : null
  }
}

let limit: number | null | undefined

export function maxDescriptors(): number | null {
  return (limit ??= readLimit())
}

function readLimit(): number | null {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? null : Number(soft)
  } catch {
    return null
  }
}
