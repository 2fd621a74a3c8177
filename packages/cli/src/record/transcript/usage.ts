/** Model, tokens and cost of a model call, under the keys that the server sums. Pure. */
import { callCounts } from '@tacho/contract/record/usage-shapes.ts'
import type { Message } from './transcript.ts'

const SUMS: readonly string[] = ['promptTokens', 'completionTokens', 'totalTokens']

/**
 * `model`, `usage`, `cost` and `latency` of one message or its line. Totals of the line cover the whole conversation, so
 * they count once: with the `last` model call, and only if no message has its own.
 */
export function modelUsage(
  message: Message,
  fields: Record<string, unknown>,
  messages: readonly Message[],
  last: Message | undefined,
): Record<string, unknown> {
  const { source } = message
  const isLast = message === last
  const ofLine = (key: string): unknown =>
    isLast && messages.every((one) => one.source[key] === undefined) ? fields[key] : undefined
  const known = {
    model: text(source['model']) ?? text(fields['model']),
    usage: tokens(source['usage'] ?? ofLine('usage')),
    cost: number(source['cost'] ?? ofLine('cost')),
    latency: number(source['latency']),
  }
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined))
}

/** A count that is no count stays as it is written, so that the server warns of it. */
function tokens(usage: unknown): unknown {
  const counts = callCounts(usage)
  if (counts === null) return undefined
  const { invalid, unknown: _, ...known } = counts
  if (invalid.length > 0) return usage
  return Object.fromEntries(
    Object.entries(known).filter(([name, count]) => count !== null && (count > 0 || SUMS.includes(name))),
  )
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
