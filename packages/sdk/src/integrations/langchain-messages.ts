/** Reads the messages and results of models that LangChain passes to handlers. */
import { callUsage, gatewayCost } from './call-usage.ts'
import { fields, set, text, type Fields } from './host.ts'
import { messagesOf } from './messages.ts'
import type { ModelResult } from './model-call.ts'

const ROLES = new Map([
  ['human', 'user'],
  ['ai', 'assistant'],
])

export function langchainMessages(rawMessage: unknown): unknown[] {
  return Array.isArray(rawMessage) ? rawMessage.map(langchainMessage) : []
}

function langchainMessage(rawMessage: unknown): unknown {
  const message = fields(rawMessage)
  const { type } = message as { type?: unknown }
  const kind = String(type ?? (message as { getType?(): unknown }).getType?.())
  const [shaped] = messagesOf([
    {
      role: ROLES.get(kind) ?? kind,
      content: message['content'],
      tool_calls: message['tool_calls'],
      tool_call_id: message['tool_call_id'],
    },
  ])
  return shaped?.content === '' ? set({ ...shaped, content: undefined }) : shaped
}

export function resultOf(rawResult: unknown): ModelResult {
  const { generations, llmOutput } = fields(rawResult)
  const generation = fields(fields(fields(generations)[0])[0])
  const message = fields(generation['message'])
  const metadata = fields(message['response_metadata'])
  return {
    model: metadata['model_name'] ?? metadata['model'] ?? fields(llmOutput)['model_name'],
    usage: callUsage(message['usage_metadata']),
    cost: gatewayCost(metadata, metadata),
    output: generation['message'] ? langchainMessage(message) : generation['text'],
    asked: askedIn(fields(generations)[0]),
    isMended: true,
    hasApprovals: true,
    finishReason: reasonIn(metadata) ?? reasonIn(fields(generation['generationInfo'])),
  }
}

/** The result of a stream that was not completed. */
export class StreamedPieces {
  #text = ''
  readonly #calls = new Map<unknown, { id: unknown; name: unknown; args: string }>()

  /** @param message of the chunk, if the model is a chat model. */
  add(token: unknown, message: unknown): void {
    this.#text += text(fields(message)['text']) ?? text(token) ?? ''
    const pieces = fields(message)['tool_call_chunks']
    for (const piece of Array.isArray(pieces) ? pieces.map(fields) : []) {
      const call = this.#calls.get(piece['index']) ?? { id: piece['id'], name: piece['name'], args: '' }
      call.args += text(piece['args']) ?? ''
      this.#calls.set(piece['index'], call)
    }
  }

  result(): ModelResult {
    const calls = [...this.#calls.values()].map((call) => ({ ...call, type: 'tool_call', finish_reason: 'cut' }))
    const [output] = messagesOf([{ role: 'assistant', content: this.#text || undefined, tool_calls: calls }])
    const isEmpty = this.#text === '' && calls.length === 0
    return { output: isEmpty ? undefined : output, asked: calls, isMended: true, hasApprovals: true }
  }
}

/** In a stream of OpenAI, the finish reason is beside the message. */
function reasonIn({
  finish_reason: chat,
  stop_reason: anthropic,
  finishReason: google,
  stopReason: bedrock,
  ...more
}: Fields): unknown {
  return (
    chat ??
    anthropic ??
    google ??
    bedrock ??
    fields(more['incomplete_details'])['reason'] ??
    more['done_reason'] ??
    more['status']
  )
}

/** Reads calls as received, because LangChain closes the brackets of a cut call. */
function askedIn(candidates: unknown): unknown[] {
  return (Array.isArray(candidates) ? candidates : []).flatMap((candidate) => {
    const message = fields(fields(candidate)['message'])
    const lists = ['tool_calls', 'invalid_tool_calls'].map((name) => message[name])
    const pieces = message['tool_call_chunks']
    const calls = Array.isArray(pieces) && pieces.length > 0 ? pieces : lists.filter(Array.isArray).flat()
    const reason =
      reasonIn(fields(message['response_metadata'])) ?? reasonIn(fields(fields(candidate)['generationInfo']))
    return calls.map((call) => ({ ...fields(call), type: 'tool_call', finish_reason: reason }))
  })
}
