import { MESSAGES } from '../../../../sdk/src/integrations/anthropic-messages.ts'
import { fields, text, type Fields } from '../../../../sdk/src/integrations/host.ts'
import type { Protocol } from './protocol.ts'

export const ANTHROPIC_MESSAGES: Protocol = {
  ...MESSAGES,
  name: 'anthropic-messages',
  failedCalls: ({ messages }) => {
    const parts = listOf(messages).flatMap(({ content }) => listOf(content))
    const failed = parts.filter((part) => part['type'] === 'tool_result' && part['is_error'] === true)
    return new Set(failed.flatMap((part) => text(part['tool_use_id']) ?? []))
  },
}

function listOf(given: unknown): Fields[] {
  return Array.isArray(given) ? given.map(fields) : []
}
