/** How much memory bodies and replies of all requests may take together. */
import os from 'node:os'
import { LIMITS } from '@tacho/contract/engine/limits.ts'

/** In bytes. */
export type RequestMemory = Record<'bodies' | 'replies', number>

const MOST = 64 * 1_048_576
/** Four of the largest pages. */
const LEAST = 16 * 1_048_576
const PART = 16

/** With a higher limit of one body, a few of the largest still fit beside each other. */
export function bodyMemory({ bodies }: RequestMemory, largestBody: number): number {
  return largestBody > LIMITS.otlpBytes ? Math.max(bodies, 3 * largestBody) : bodies
}

export function requestMemory(
  available: number = Math.min(os.totalmem(), process.constrainedMemory() || Infinity),
): RequestMemory {
  const bytes = Math.min(MOST, Math.max(LEAST, Math.floor(available / PART)))
  return { bodies: bytes, replies: bytes }
}
