import os from 'node:os'

/** In bytes. */
export type RequestMemory = Record<'bodies' | 'replies', number>

const MOST = 64 * 1_048_576
/** Four of the largest pages. */
const LEAST = 16 * 1_048_576
const PART = 16

export function requestMemory(
  available: number = Math.min(os.totalmem(), process.constrainedMemory() || Infinity),
): RequestMemory {
  const bytes = Math.min(MOST, Math.max(LEAST, Math.floor(available / PART)))
  return { bodies: bytes, replies: bytes }
}
