import { MessageStream, messageResult } from '../../../../sdk/src/integrations/anthropic-messages.ts'
import { fields, text, toolNames, type Fields } from '../../../../sdk/src/integrations/host.ts'
import { messagesOf, withSystem } from '../../../../sdk/src/integrations/messages.ts'
import { callKey, listOf, namedCall, type Protocol } from './protocol.ts'

export const ANTHROPIC_MESSAGES: Protocol = {
  name: 'anthropic-messages',
  request: ({ model, system, messages, tools }) => ({
    model,
    provider: 'anthropic',
    messages: withSystem(system, messagesOf(messages)),
    tools: toolNames(tools),
  }),
  result: messageResult,
  stream: () => new MessageStream(),
  failedCalls: ({ messages }) => {
    const parts = listOf(messages).flatMap(({ content }) => listOf(content))
    const failed = parts.filter(
      (messagePart) => messagePart['type'] === 'tool_result' && messagePart['is_error'] === true,
    )
    return new Set(failed.flatMap((messagePart) => text(messagePart['tool_use_id']) ?? []))
  },
  refusing: {
    named: ({ content_block: block, message, content }) =>
      [fields(block), ...listOf(fields(message)['content']), ...listOf(content)]
        .filter(isCall)
        .flatMap(({ id, name }) => namedCall(id, name) ?? []),
    whole(answer, refusals) {
      const blocks = listOf(answer['content']).map((block) => {
        const refusal = isCall(block) ? refusals.get(keyIn(block)) : undefined
        return refusal === undefined ? block : { type: 'text', text: refusal }
      })
      const reason = blocks.some(isCall) ? answer['stop_reason'] : withoutCalls(answer['stop_reason'])
      return { ...answer, content: blocks, stop_reason: reason }
    },
    stream(refusals) {
      const refused = new Set<unknown>()
      let isKept = false
      return (event) => {
        const { type, index } = event
        if (type === 'content_block_start') {
          const block = fields(event['content_block'])
          const refusal = isCall(block) ? refusals.get(keyIn(block)) : undefined
          isKept ||= isCall(block) && refusal === undefined
          if (refusal === undefined) return undefined
          refused.add(index)
          return [
            { ...event, content_block: { type: 'text', text: '' } },
            { type: 'content_block_delta', index, delta: { type: 'text_delta', text: refusal } },
          ]
        }
        if (type === 'content_block_delta' && refused.has(index)) return []
        if (type !== 'message_delta' || isKept) return undefined
        const delta = fields(event['delta'])
        return [{ ...event, delta: { ...delta, stop_reason: withoutCalls(delta['stop_reason']) } }]
      }
    },
  },
}

const isCall = ({ type }: Fields): boolean => type === 'tool_use'

const keyIn = (block: Fields): string => callKey(block['id'], block['name'])

const withoutCalls = (reason: unknown): unknown => (reason === 'tool_use' ? 'end_turn' : reason)
