import { callUsage } from './call-usage.ts'
import { fields, text, type Fields } from './host.ts'
import { answerOf, parsed } from './messages.ts'
import type { ModelResult } from './model-call.ts'
import type { Collector } from './model-stream.ts'

export class MessageStream implements Collector {
  isComplete = false
  #message: Fields = {}
  #usage: Fields = {}
  #stopReason: unknown
  readonly #blocks = new Map<unknown, { start: Fields; text: string; json: string }>()

  add(event: Fields): boolean {
    const { type, index, message, content_block: start } = event
    const delta = fields(event['delta'])
    if (type === 'message_start') {
      this.#message = fields(message)
      this.#usage = { ...fields(this.#message['usage']) }
    } else if (type === 'content_block_start') {
      this.#blocks.set(index, { start: fields(start), text: text(fields(start)['text']) ?? '', json: '' })
    } else if (type === 'content_block_delta') {
      const block = this.#blocks.get(index)
      if (block) {
        block.text += text(delta['text']) ?? text(delta['thinking']) ?? ''
        block.json += text(delta['partial_json']) ?? ''
      }
      return true
    } else if (type === 'message_delta') {
      this.#stopReason = delta['stop_reason']
      this.#usage = { ...this.#usage, ...fields(event['usage']) }
    } else if (type === 'message_stop') this.isComplete = true
    return false
  }

  callId({ content_block: start }: Fields): unknown {
    const { type, id } = fields(start)
    return type === 'tool_use' ? id : undefined
  }

  result(): ModelResult {
    const blocks = [...this.#blocks.values()]
    // Use the input as received: the client may have repaired it.
    const asked = blocks.map(({ start, json }) => (json === '' ? start : { ...start, input: json }))
    const content = blocks.map(({ start, ...block }) => {
      if (start['type'] === 'text') return { type: 'text', text: block.text }
      if (start['type'] === 'thinking') return { type: 'thinking', thinking: block.text }
      return block.json === '' ? start : { ...start, input: parsed(block.json) }
    })
    return { ...messageResult({ ...this.#message, content, stop_reason: this.#stopReason, usage: this.#usage }), asked }
  }
}

export function messageResult({ model, content, stop_reason: finishReason, usage }: Fields): ModelResult {
  const output = Array.isArray(content) && content.length > 0 ? answerOf(content) : undefined
  return { model, usage: callUsage(usage), output, finishReason, asked: content }
}
