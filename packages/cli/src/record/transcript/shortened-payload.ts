/** Shortens a payload to the limits of the server, and marks it as shortened. Pure. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'

export interface Fitted {
  payload: Record<string, unknown>
  /** Whether anything was cut. If so, the payload has a member `shortened`. */
  shortened: boolean
}

/** Deepest level of a shortened payload. */
const DEEPEST_KEPT = 100

/** The payload itself if it fits. Otherwise halves the limit for texts and lists until it fits. */
export function fitPayload(payload: Record<string, unknown>): Fitted {
  const bytes = encodedBytes(payload)
  if (bytes !== null && bytes <= LIMITS.payloadBytes && !isDeeper(payload, LIMITS.payloadDepthLevels)) {
    return { payload, shortened: false }
  }
  const shortened = bytes === null ? { reason: 'nested too deep' } : { originalBytes: bytes }
  for (let longest: number = LIMITS.payloadBytes; longest > 1; longest = Math.floor(longest / 2)) {
    const cut = { ...(cutValue(payload, longest, 1) as Record<string, unknown>), shortened }
    if ((encodedBytes(cut) ?? Infinity) <= LIMITS.payloadBytes) return { payload: cut, shortened: true }
  }
  return { payload: { shortened }, shortened: true }
}

/** Null if the value is nested too deep to encode. */
function encodedBytes(value: unknown): number | null {
  try {
    return Buffer.byteLength(JSON.stringify(value))
  } catch {
    return null
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

function cutValue(value: unknown, longest: number, level: number): unknown {
  if (typeof value === 'string') return cutText(value, longest)
  if (typeof value !== 'object' || value === null) return value
  if (level > DEEPEST_KEPT) return '[nested too deep]'
  // Every list entry takes at least a few bytes.
  const most = Math.max(1, Math.floor(longest / 8))
  if (Array.isArray(value)) {
    const keptItems = value.slice(0, most).map((item) => cutValue(item, longest, level + 1))
    return value.length > most ? [...keptItems, `[${value.length - most} more items]`] : keptItems
  }
  const entries = Object.entries(value)
  const keptEntries = entries
    .slice(0, most)
    .map(([key, item]) => [cutText(key, longest), cutValue(item, longest, level + 1)])
  if (entries.length > most) keptEntries.push(['…', `[${entries.length - most} more fields]`])
  return Object.fromEntries(keptEntries) as Record<string, unknown>
}

function cutText(text: string, longest: number): string {
  if (text.length <= longest) return text
  return `${text.slice(0, longest).toWellFormed()}… [${text.length - longest} more characters]`
}
