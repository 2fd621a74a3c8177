/** Model, tokens and cost of a model call, under the keys that the server sums. Pure. */
import type { Message } from './transcript.ts'

const TOKENS = {
  promptTokens: ['promptTokens', 'prompt_tokens', 'input_tokens'],
  completionTokens: ['completionTokens', 'completion_tokens', 'output_tokens'],
  totalTokens: ['totalTokens', 'total_tokens'],
} as const

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

function tokens(usage: unknown): Record<string, unknown> | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined
  const given = usage as Record<string, unknown>
  const found = Object.entries(TOKENS).flatMap(([name, keys]) => {
    const key = keys.find((one) => typeof given[one] === 'number')
    return key === undefined ? [] : [[name, given[key]]]
  })
  return found.length === 0 ? undefined : (Object.fromEntries(found) as Record<string, unknown>)
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
