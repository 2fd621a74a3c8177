/** Makes a payload fit the limits of the service, and says so inside it. Pure. */
import { LIMITS } from '@tacho/contract/limits.ts'

export interface Fitted {
  payload: Record<string, unknown>
  /** Whether anything was cut: the payload then says so under `shortened`. */
  shortened: boolean
}

/** Nothing below this level of a payload that must be shortened is kept. */
const DEEPEST_KEPT = 100

/** The payload itself when it fits; otherwise with its long texts and lists cut, as little as halving bounds allows. */
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

/** Null when the value is nested too deep to be encoded at all. */
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
  // A list entry costs a few bytes at least, whatever it holds.
  const most = Math.max(1, Math.floor(longest / 8))
  if (Array.isArray(value)) {
    const kept = value.slice(0, most).map((item) => cutValue(item, longest, level + 1))
    return value.length > most ? [...kept, `[${value.length - most} more items]`] : kept
  }
  const entries = Object.entries(value)
  const kept = entries.slice(0, most).map(([key, item]) => [cutText(key, longest), cutValue(item, longest, level + 1)])
  if (entries.length > most) kept.push(['…', `[${entries.length - most} more fields]`])
  return Object.fromEntries(kept) as Record<string, unknown>
}

function cutText(text: string, longest: number): string {
  if (text.length <= longest) return text
  return `${text.slice(0, longest).toWellFormed()}… [${text.length - longest} more characters]`
}
